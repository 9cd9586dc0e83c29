//! How many threads the starter model computes with.
//!
//! Candle's threads wait for each other by spinning. When there are as many of them as
//! processors, every other program on the machine stops all of them: on two loaded cores, two
//! threads were three to ten times slower than one. Candle can be told by the environment
//! alone, which it reads once, so this sets a variable of its own process.
//!
//! That is sound only while no other thread reads the environment, which C libraries do
//! without asking. Hence the rule: `main` calls [`leave_one_free`] before anything else. A
//! crate of its own because the others forbid unsafe code, and their edition calls it so.

/// Read by candle, and by rayon, which multiplies candle's unquantised matrices.
const VARIABLE: &str = "RAYON_NUM_THREADS";

/// Has candle leave a processor free. What the user set holds. Call it first in `main`, before
/// there is a second thread.
pub fn leave_one_free() {
    if std::env::var_os(VARIABLE).is_none() {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = threads(processors, num_cpus::get_physical());
        std::env::set_var(VARIABLE, threads.to_string());
    }
}

/// One thread for each core, as long as one of the processors that this process may use stays
/// free. Two processors of one core share what the model needs most.
fn threads(processors: usize, cores: usize) -> usize {
    cores.min(processors.saturating_sub(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_processor_stays_free() {
        assert_eq!(threads(1, 1), 1);
        assert_eq!(threads(2, 2), 1);
        assert_eq!(threads(4, 4), 3);
        assert_eq!(
            threads(16, 8),
            8,
            "each core has a second processor to spare"
        );
        assert_eq!(
            threads(2, 64),
            1,
            "a container with two processors on a large host"
        );
    }
}
