//! Faults of the disk and of the clock in the program under test: `shim.c`, loaded into it.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::server::{House, text};

const SOURCE: &str = include_str!("shim.c");

/// What becomes of writes below the data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskFault {
    /// `ENOSPC`
    Full = 28,
    /// `EROFS`
    ReadOnly = 30,
    /// `EIO`, of what makes them durable too.
    Broken = 5,
    /// The process is killed at the write.
    Kill = -1,
}

/// The faults of one house. No fault at first.
#[derive(Debug)]
pub(crate) struct Shim {
    dir: TempDir,
    control: File,
}

impl Shim {
    /// Loads it into whatever is started in this house from now on.
    pub(crate) fn load(house: House) -> (Self, House) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let control = dir.path().join("control");
        fs::write(&control, [0; 24]).expect("a file");
        File::create(dir.path().join("trace")).expect("a file");
        let data = house.data_dir();
        let house = house.with(&[
            ("LD_PRELOAD", text(library())),
            ("SHIM_CONTROL", text(&control)),
            ("SHIM_DIR", text(&data)),
        ]);
        let control = File::options()
            .write(true)
            .open(control)
            .expect("it is ours");
        (Self { dir, control }, house)
    }

    /// Writes fail, after so many that still pass.
    pub(crate) fn fail(&self, fault: DiskFault, after: u64) {
        let mut both = [0; 16];
        both[..8].copy_from_slice(&(fault as i64).to_ne_bytes());
        both[8..].copy_from_slice(&after.to_ne_bytes());
        // The count first: it means nothing without a fault.
        self.control.write_all_at(&both[8..], 8).expect("written");
        self.control.write_all_at(&both[..8], 0).expect("written");
    }

    /// The disk is as it should be.
    pub(crate) fn mend(&self) {
        self.control.write_all_at(&[0; 8], 0).expect("written");
    }

    /// How many writes passed since the fault was set to come after `after` of them.
    pub(crate) fn passed(&self, after: u64) -> u64 {
        let control = fs::read(self.dir.path().join("control")).expect("it is ours");
        let left = i64::from_ne_bytes(control[8..16].try_into().expect("8 bytes"));
        after.saturating_sub(u64::try_from(left).unwrap_or(0))
    }

    /// The wall clock is so many seconds ahead of what it was when the test began.
    pub(crate) fn set_clock(&self, ahead: i64) {
        self.control
            .write_all_at(&ahead.to_ne_bytes(), 16)
            .expect("written");
    }

    /// Every change below the data directory is traced from the next start on.
    pub(crate) fn traced(&self, house: House) -> House {
        house.with(&[("SHIM_TRACE", text(&self.trace()))])
    }

    pub(crate) fn trace(&self) -> PathBuf {
        self.dir.path().join("trace")
    }
}

/// Compiled once for each state of its source.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let mut hasher = DefaultHasher::new();
        SOURCE.hash(&mut hasher);
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
        fs::create_dir_all(dir).expect("cargo's directory for tests");
        let library = dir.join(format!("shim-{:016x}.so", hasher.finish()));
        if !library.exists() {
            let source = dir.join(format!("shim-{}.c", std::process::id()));
            let draft = source.with_extension("so");
            fs::write(&source, SOURCE).expect("written");
            let compiled = Command::new("cc")
                .args(["-shared", "-fPIC", "-O1", "-o"])
                .args([&draft, &source])
                .output()
                .expect("cc, which building navi needs too");
            let said = String::from_utf8_lossy(&compiled.stderr);
            assert!(compiled.status.success(), "{said}");
            // Whole, however many tests begin at once.
            fs::rename(draft, &library).expect("renamed");
            let _ = fs::remove_file(source);
        }
        library
    })
}
