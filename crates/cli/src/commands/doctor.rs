//! `inferscope doctor`: what can be recorded on this machine, and why not.

use crate::config::Settings;
use crate::doctor::{self, Line, Mark};
use crate::ending::Ending;
use crate::failure::Failure;
use crate::{output, terminal};
use report::{Ink, Style};
use std::io::{self, Write};

pub fn run(settings: &Settings) -> Result<Ending, Failure> {
    let style = terminal::stdout_style(&settings.color);
    let sections = doctor::examine(settings);
    output::write_to(None, |out| sections.iter().try_for_each(|(title, lines)| section(title, lines, &style, out)))?;
    Ok(Ending::FINE)
}

fn section(title: &str, lines: &[Line], style: &Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", style.ink(Ink::Heading, title))?;
    let width = lines.iter().map(|line| line.what.chars().count()).max().unwrap_or(0).min(40);
    for line in lines {
        let (mark, ink) = match (line.mark, style.unicode) {
            (Mark::Yes, true) => ("✓", Ink::Good),
            (Mark::Yes, false) => ("+", Ink::Good),
            (Mark::No, true) => ("✗", Ink::Warn),
            (Mark::No, false) => ("x", Ink::Warn),
            (Mark::Note, _) => (" ", Ink::Plain),
        };
        let text = style.plain(&line.text);
        writeln!(out, "  {} {:width$}  {text}", style.ink(ink, mark), line.what)?;
    }
    writeln!(out)
}
