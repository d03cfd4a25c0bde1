//! `inferscope config show`: every setting with its value and where that comes from;
//! with `--verbose` also what it is for.

use crate::args::{Config, ConfigAction};
use crate::config::{LogLevel, Settings};
use crate::ending::Ending;
use crate::failure::Failure;
use crate::{output, terminal};
use report::Ink;

pub fn run(settings: &Settings, config: &Config) -> Result<Ending, Failure> {
    let ConfigAction::Show = config.action;
    let style = terminal::stdout_style(&settings.color);
    let width = |column: fn(&(&'static str, String, crate::config::Origin)) -> usize| {
        settings.shown.iter().map(column).max().unwrap_or(0)
    };
    let (keys, values) = (width(|shown| shown.0.len()), width(|shown| shown.1.chars().count()).min(40));
    output::write_to(None, |out| {
        for (key, value, origin) in &settings.shown {
            let origin = style.ink(Ink::Faint, &origin.to_string());
            let what = match settings.log_level {
                LogLevel::Debug => style.ink(Ink::Faint, &format!("  # {}", crate::config::meaning(key))),
                _ => String::new(),
            };
            writeln!(out, "{key:keys$}  {value:values$}  {origin}{what}")?;
        }
        Ok(())
    })?;
    Ok(Ending::FINE)
}
