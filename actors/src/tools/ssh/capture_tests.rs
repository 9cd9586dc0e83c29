use std::sync::Arc;

use super::*;
use crate::tools::fake_session::Recorded;

fn capture() -> (Capture, Arc<Recorded>) {
    let recorded = Arc::new(Recorded::default());
    (Capture::new(recorded.clone()), recorded)
}

fn shown(recorded: &Recorded) -> String {
    recorded.0.lock().clone()
}

#[test]
fn characters_that_come_in_halves_are_shown_whole() {
    let (mut capture, recorded) = capture();
    for byte in "звіт 📎 done".bytes() {
        capture.push(&[byte]);
    }
    capture.push(b"\xff\xd0");
    let captured = capture.finish();
    assert_eq!(shown(&recorded), "звіт 📎 done\u{fffd}\u{fffd}");
    assert_eq!(captured, "звіт 📎 done\u{fffd}\u{fffd}");
}

#[test]
fn of_much_output_beginning_and_end_are_kept() {
    let (mut capture, _) = capture();
    capture.push(b"first ");
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..6 {
        capture.push(&piece);
    }
    capture.push(b" last");
    let captured = capture.finish();
    let missing = 6 * (1 << 20) + 11 - KEPT_BYTES - TAIL_BYTES;
    assert!(captured.contains(&format!("[… {missing} bytes were not kept …]")));
    assert!(captured.len() < KEPT_BYTES + TAIL_BYTES + 100);
    assert!(captured.starts_with("first x") && captured.ends_with("x last"));
}
