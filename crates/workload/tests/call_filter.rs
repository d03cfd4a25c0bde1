//! Which functions the call collector records.

use workload::call_filter::Filter;

fn filter(include: &[&str], exclude: &[&str]) -> Filter {
    let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    Filter::new(&owned(include), &owned(exclude), "/env/inferscope")
}

#[test]
fn by_default_everything_but_the_import_machinery_and_ourselves() {
    let all = filter(&[], &[]);
    assert!(!all.asks_for_module());
    assert!(all.wants("app", "/srv/app.py"));
    assert!(all.wants("json", "/usr/lib/python3.12/json/__init__.py"));
    assert!(all.wants("", "<string>"));
    assert!(!all.wants("importlib._bootstrap", "<frozen importlib._bootstrap>"));
    assert!(!all.wants("inferscope._decorate", "/env/inferscope/_decorate.py"));
    assert!(all.wants("inferscope_plugin", "/env/inferscope_plugin/__init__.py"));
}

#[test]
fn a_module_means_itself_and_what_is_inside() {
    let model = filter(&["app.model"], &["app.model.slow"]);
    assert!(model.wants("app.model", "x.py"));
    assert!(model.wants("app.model.layers", "x.py"));
    assert!(!model.wants("app.models", "x.py"));
    assert!(!model.wants("app", "x.py"));
    assert!(!model.wants("app.model.slow", "x.py"));
    assert!(!model.wants("app.model.slow.part", "x.py"));
}

#[test]
fn a_script_answers_to_its_file_name() {
    assert!(filter(&["serve"], &[]).wants("__main__", "/srv/serve.py"));
    assert!(!filter(&["serve"], &[]).wants("__main__", "/srv/other.py"));
    assert!(filter(&["__main__"], &[]).wants("__main__", "/srv/serve.py"));
}

#[test]
fn a_path_is_a_file_a_folder_or_a_pattern() {
    assert!(filter(&["/srv/app"], &[]).wants("m", "/srv/app/model.py"));
    assert!(!filter(&["/srv/app"], &[]).wants("m", "/srv/application/model.py"));
    assert!(filter(&["app/model.py"], &[]).wants("m", "/srv/app/model.py"));
    assert!(filter(&["model.py"], &[]).wants("m", "/srv/app/model.py"));
    assert!(!filter(&["model.py"], &[]).wants("m", "/srv/app/bigmodel.py"));
    assert!(filter(&["*/app/*.py"], &[]).wants("m", "/srv/app/deep/model.py"));
    assert!(filter(&["app/mod?l.py"], &[]).wants("m", "/srv/app/model.py"));
    assert!(!filter(&["*.pyx"], &[]).wants("m", "/srv/app/model.py"));
    assert!(!filter(&[], &["*/site-packages/*"]).wants("m", "/env/lib/site-packages/x.py"));
    assert!(filter(&["*é?*"], &[]).wants("m", "/srv/éà.py"));
}

#[test]
fn many_stars_take_no_forever() {
    let pattern = "*a".repeat(30) + "b";
    assert!(!filter(&[&pattern], &[]).wants("m", &"a".repeat(2000)));
}
