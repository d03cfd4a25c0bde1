//! The flags of settings, made from their rows. What they were given stays text: `config` reads it together with the environment
//! and the file, so that each value has one meaning and one error.

use crate::config::Layer;
use clap::builder::PathBufValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::path::PathBuf;
use trace::settings::{self, Accepts, Commands, Flags, Setting, Word, truth};

/// Which commands the flags belong to, as a type: clap asks a type for its arguments.
pub trait Of: Debug {
    const COMMANDS: Commands;
}

macro_rules! of {
    ($($name:ident),*) => {
        $(
            #[derive(Debug)]
            pub struct $name;
            impl Of for $name {
                const COMMANDS: Commands = Commands::$name;
            }
        )*
    };
}
of!(Recording, Reading, Tables, Every);

/// What was given of these flags.
#[derive(Debug)]
pub struct SettingFlags<O> {
    layer: Layer,
    /// A path need not be text; every other value is.
    pub(super) folder: Option<PathBuf>,
    of: PhantomData<O>,
}

impl<O> SettingFlags<O> {
    pub fn layer(&self) -> Layer {
        self.layer.clone()
    }
}

impl SettingFlags<Recording> {
    /// The first flag, if any, that asks for what is recorded only from inside the process.
    pub fn inside_only(&self) -> Option<&'static str> {
        rows(Commands::Recording).filter(|row| row.inside_only).find_map(|row| {
            let (words, flag) = self.layer.given(row.key)?;
            let is_no = matches!(row.accepts, Accepts::Truth | Accepts::Calls | Accepts::GpuDetail)
                && words.iter().all(|word| truth(word) == Some(false));
            (!is_no).then_some(flag)
        })
    }
}

impl<O: Of> FromArgMatches for SettingFlags<O> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = SettingFlags { layer: Layer::default(), folder: None, of: PhantomData };
        for row in rows(O::COMMANDS) {
            match row.flags {
                Flags::None => {}
                Flags::Value { long, .. } => flags.take(row, long, matches),
                Flags::Words(words) => {
                    let given = words.iter().filter(|word| matches.get_flag(id(word)));
                    given.for_each(|word| flags.layer.flag(row.key, word.long, &[word.stands_for.to_owned()]));
                }
            }
        }
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<O> SettingFlags<O> {
    fn take(&mut self, row: &Setting, long: &'static str, matches: &ArgMatches) {
        let words: Vec<String> = if row.accepts == Accepts::Folder {
            self.folder = matches.get_one::<PathBuf>(row.field).cloned();
            self.folder.iter().filter_map(|path| path.to_str().map(str::to_owned)).collect()
        } else {
            matches.get_many::<String>(row.field).into_iter().flatten().cloned().collect()
        };
        if words.is_empty() {
            return;
        }
        self.layer.flag(row.key, long, &words);
        // Whoever names a rate wants stacks, whatever the environment says.
        if row.key == "rate_hz" {
            self.layer.flag("stacks", long, &["true".to_owned()]);
        }
    }
}

impl<O: Of> Args for SettingFlags<O> {
    fn augment_args(command: Command) -> Command {
        rows(O::COMMANDS).flat_map(arguments).fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn rows(commands: Commands) -> impl Iterator<Item = &'static Setting> {
    settings::all().filter(move |row| row.commands == commands)
}

fn arguments(row: &'static Setting) -> Vec<Arg> {
    let bare = match row.flags {
        Flags::None => Vec::new(),
        Flags::Value { long, value, short } => vec![valued(row, Arg::new(row.field).value_name(value), long, short)],
        Flags::Words(words) => words.iter().map(word).collect(),
    };
    let shared = |arg: Arg| match row.commands {
        // Behind what each command has of its own.
        Commands::Every => arg.global(true).display_order(900),
        // Limits that few ever meet.
        Commands::Reading => arg.hide_short_help(true),
        Commands::Recording | Commands::Tables => arg,
    };
    bare.into_iter().map(shared).collect()
}

fn valued(row: &Setting, arg: Arg, long: &'static str, short: Option<char>) -> Arg {
    let arg = arg.long(name(long)).help(help(row));
    let arg = short.into_iter().fold(arg, Arg::short);
    match row.accepts {
        Accepts::Truth | Accepts::Calls => arg.num_args(0..=1).require_equals(true).default_missing_value("true"),
        Accepts::Whole { .. } | Accepts::Number { .. } => arg.allow_negative_numbers(true),
        Accepts::Budget => arg.allow_hyphen_values(true),
        Accepts::List => arg.action(ArgAction::Append),
        Accepts::Folder => arg.value_parser(PathBufValueParser::new()),
        Accepts::GpuDetail | Accepts::OneOf(_) => arg,
    }
}

fn word(word: &'static Word) -> Arg {
    let conflicts = word.conflicts.iter().map(|flag| {
        let value = settings::all().find(|row| matches!(row.flags, Flags::Value { long, .. } if long == *flag));
        value.map_or(name(flag), |row| row.field)
    });
    let arg = Arg::new(id(word)).long(name(word.long)).help(word.help).action(ArgAction::SetTrue);
    word.short.into_iter().fold(arg.conflicts_with_all(conflicts), Arg::short)
}

/// The flag's help: what the setting is for, and what it is if nobody says.
fn help(row: &Setting) -> String {
    let help = row.help();
    match (row.accepts, row.default_words()) {
        (Accepts::Truth, Some(default)) if default == "true" => format!("{help}; `=false` turns it off [default: on]"),
        (Accepts::Truth, _) => format!("{help}; `=false` overrides a settings file"),
        (Accepts::Calls, _) | (_, None) => help,
        (_, Some(default)) => format!("{help} [default: {default}]"),
    }
}

fn name(long: &'static str) -> &'static str {
    long.trim_start_matches('-')
}

fn id(word: &Word) -> &'static str {
    name(word.long)
}
