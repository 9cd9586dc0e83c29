//! What the machine has left.

use std::path::Path;

/// Bytes that programs can still take without swapping. None where the system does not say.
pub(super) fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    available_in(&text)
}

fn available_in(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// Bytes that a file in this directory can still take. None where the system does not say.
#[cfg(unix)]
pub(super) fn free_disk(directory: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(directory).ok()?;
    stat.f_bavail.checked_mul(stat.f_frsize)
}

/// Bytes that a file in this directory can still take. None where the system does not say.
#[cfg(not(unix))]
pub(super) fn free_disk(_directory: &Path) -> Option<u64> {
    None
}

/// Bytes as a person reads them.
pub(super) fn readable(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
    let amount = bytes as f64;
    if amount >= 1e9 {
        format!("{:.1} GB", amount / 1e9)
    } else {
        format!("{:.0} MB", amount / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_understood() {
        let text = "MemTotal:       24000000 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(available_in(text), Some(2_097_152));
        assert_eq!(available_in("MemTotal: 1 kB"), None);
        assert_eq!(available_in("MemAvailable: many kB"), None);
    }

    #[test]
    fn sizes_are_told_in_what_fits() {
        assert_eq!(readable(98_362_432), "98 MB");
        assert_eq!(readable(2_200_000_000), "2.2 GB");
    }
}
