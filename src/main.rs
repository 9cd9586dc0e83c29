//! The program `navi`.

use std::process::ExitCode;

/// The C library's allocator keeps the pieces of long answers: after 100 MB of them the
/// process held five times as much as it used.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    navi::main()
}
