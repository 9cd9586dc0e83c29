//! What the operating system says of this process.

/// What it holds of the machine's memory, in bytes. None where the system does not say.
#[cfg(target_os = "linux")]
pub(super) fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    resident_pages(&statm)?.checked_mul(u64::try_from(rustix::param::page_size()).ok()?)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn resident_bytes() -> Option<u64> {
    None
}

/// The second number of `/proc/self/statm` (proc_pid_statm(5)).
#[cfg(target_os = "linux")]
fn resident_pages(statm: &str) -> Option<u64> {
    statm.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn memory_is_the_second_number_in_pages() {
        assert_eq!(resident_pages("9 7 5 3 0 2 0\n"), Some(7));
        assert_eq!(resident_pages("9"), None);
        assert!(resident_bytes().is_some_and(|bytes| bytes > 1_000_000));
    }
}
