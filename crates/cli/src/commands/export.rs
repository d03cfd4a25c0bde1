//! `inferscope export`: writes every event of a trace for another tool.

use crate::args::{Export, Format};
use crate::config::Settings;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::{open, output};

pub fn run(settings: &Settings, export: &Export) -> Result<Ending, Failure> {
    let timeline = open::open(settings, export.trace.as_deref())?;
    timeline.notes.iter().for_each(|note| settings.say(note));
    output::write_to(export.output.as_deref(), |mut out| match export.format {
        Format::Chrome => report::chrome::write(&timeline, &mut out),
        Format::Json => report::json::write(&timeline, &mut out),
    })?;
    if let Some(path) = &export.output {
        settings.say(format_args!("wrote {}", path.display()));
    }
    Ok(Ending::FINE)
}
