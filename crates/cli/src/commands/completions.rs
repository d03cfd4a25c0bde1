//! `inferscope completions`: a script that teaches a shell our commands and flags.

use crate::ending::Ending;
use crate::failure::Failure;
use crate::output;

pub fn run(shell: clap_complete::Shell, command: &mut clap::Command) -> Result<Ending, Failure> {
    // The generator writes in one go and panics if it cannot; memory it can always write to.
    let mut script = Vec::new();
    clap_complete::generate(shell, command, "inferscope", &mut script);
    output::write_to(None, |out| out.write_all(&script))?;
    Ok(Ending::FINE)
}
