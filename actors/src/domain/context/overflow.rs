//! A prompt that a server found too long: how large its window is, and what the next one is
//! made to fit into (SPEC section 8).

/// What a server said of a prompt that was too long, as far as it said it. In tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overflow {
    /// The window that it has.
    pub window: Option<u32>,
    /// What it was sent.
    pub prompt: Option<u32>,
}

/// What the next prompt goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Learnt {
    /// The window; 0 where nobody knows it.
    pub window: u32,
    /// What the next prompt and its answer may come to by our own guess.
    pub room: u32,
}

/// What is learnt from a prompt of `estimated` tokens, by our guess, that was too long for a
/// window that was taken to be `window`.
///
/// Where our guess was low, the room shrinks by as much. In any case the next prompt is smaller
/// than this one was: the same would be refused again.
#[must_use]
pub fn learn(told: Overflow, window: u32, estimated: u32) -> Learnt {
    let window = match told.window {
        Some(told) if window == 0 || told < window => told,
        _ => window,
    };
    let known = if window == 0 { estimated } else { window };
    let room = match told.prompt {
        Some(prompt) if prompt > estimated => {
            let scaled = u64::from(known) * u64::from(estimated) / u64::from(prompt);
            u32::try_from(scaled).unwrap_or(known)
        }
        _ => known,
    };
    Learnt {
        window,
        room: room.min(estimated - estimated / 4).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learnt(window: Option<u32>, prompt: Option<u32>, was: u32, estimated: u32) -> (u32, u32) {
        let learnt = learn(Overflow { window, prompt }, was, estimated);
        (learnt.window, learnt.room)
    }

    #[test]
    fn the_next_prompt_is_one_that_fits() {
        // The server's window is smaller than was thought.
        assert_eq!(
            learnt(Some(8_192), Some(20_000), 65_536, 20_000),
            (8_192, 8_192)
        );
        // Its window is as it was asked for: the guess was low by half.
        assert_eq!(
            learnt(Some(4_096), Some(6_000), 4_096, 3_000),
            (4_096, 2_048)
        );
        // It says nothing at all: a quarter less each time, and what was known stays.
        assert_eq!(learnt(None, None, 4_096, 4_000), (4_096, 3_000));
        assert_eq!(learnt(None, None, 0, 4_000), (0, 3_000));
        assert_eq!(learnt(Some(2_048), None, 0, 4_000), (2_048, 2_048));
        // A larger number than what was asked for is no window of ours.
        assert_eq!(learnt(Some(131_072), None, 4_096, 4_000), (4_096, 3_000));
    }
}
