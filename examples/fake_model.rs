//! The tests' fake model server as a program, for tests in other languages and for trying
//! the page without a model: `cargo run --example fake_model [PORT]`. Prints its URL as a
//! line of its own and runs until its standard input ends (or it is killed), so that it
//! never outlives what started it.

#[path = "../tests/support/fake_model/mod.rs"]
mod fake_model;

use std::io::{self, Read as _, Write as _};

fn main() -> io::Result<()> {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok());
    let model = fake_model::FakeModel::start_on(port.unwrap_or(0));
    let mut out = io::stdout();
    writeln!(out, "{}", model.url())?;
    out.flush()?;
    io::copy(&mut io::stdin().by_ref(), &mut io::sink())?;
    Ok(())
}
