//! Answers that are none: the model wrote a call as text, or said what it is about to do, and
//! stopped. Small models do; nothing was done, and nobody would know.
//!
//! Only the last sentence counts, and only where it can hardly mean anything else. One that asks,
//! or makes it depend on the user, waits for an answer and is a good end.

use crate::domain::leaked_calls;

/// How a model begins to say what it will do: English.
const INTENTS: &str = "i will,i'll,let me,i am going to,i'm going to,i shall";
/// What may stand between that and the verb.
const BETWEEN: &str = "now,first,next,then,also,just,go ahead and,proceed to";
/// What only a tool can do.
const DOES: &str = "create,write,save,store,put,generate,update,edit,append,delete,rename,move";
/// The same in one word, which says who and when: Ukrainian and Russian.
const WILL_DO: &str = "\
створю,запишу,збережу,оновлю,допишу,видалю,перейменую,переміщу,\
создам,сохраню,обновлю,удалю,переименую,перемещу";

/// What it is done to, beside a name such as `notes.md`.
const THINGS: &str = "file,files,folder,directory,файл,файли,файлы,файлі,файле,папку,теку";

/// Words of a sentence that waits for something.
const WAITS: &str = "\
if,once,when,unless,after,would,please,confirm,\
якщо,коли,щойно,після,підтвердьте,підтверди,если,когда,после,подтвердите,подтверди";

/// Whether the whole of what the model said is no answer yet.
pub(super) fn is_unfinished(text: &str, is_known: impl Fn(&str) -> bool) -> bool {
    leaked_calls::ends_in_call(text, is_known) || promises(text)
}

/// As much of the end as is looked at.
const SENTENCE_BYTES: usize = 2_000;

/// Whether it ends by saying that a file is about to be made or changed.
fn promises(text: &str) -> bool {
    let text = &text[text.ceil_char_boundary(text.len().saturating_sub(SENTENCE_BYTES))..];
    let text = text.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '`'));
    if text.ends_with('?') {
        return false;
    }
    let sentence = last_sentence(text).to_lowercase().replace('’', "'");
    let words: Vec<&str> = sentence
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '.' | '_' | '-' | '/')))
        .map(|word| word.trim_matches(['.', '-', '\'']))
        .filter(|word| !word.is_empty())
        .collect();
    let is_in = |word: &&&str, list: &str| list.split(',').any(|known| known == **word);
    words
        .iter()
        .any(|word| is_in(&word, THINGS) || is_file_name(word))
        && !words.iter().any(|word| is_in(&word, WAITS))
        && (words.iter().any(|word| is_in(&word, WILL_DO)) || intends(&words))
}

/// Whether somewhere in it stands "I will create" or the like.
fn intends(words: &[&str]) -> bool {
    (0..words.len()).any(|at| {
        let Some(mut rest) = behind_any(&words[at..], INTENTS) else {
            return false;
        };
        while let Some(behind) = behind_any(rest, BETWEEN) {
            rest = behind;
        }
        behind_any(rest, DOES).is_some()
    })
}

/// The words behind a phrase of the list that these begin with.
fn behind_any<'a, 'b>(words: &'a [&'b str], phrases: &'static str) -> Option<&'a [&'b str]> {
    phrases.split(',').find_map(|phrase| {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        words.strip_prefix(phrase.as_slice())
    })
}

/// The text behind the last line end or full stop. A stop inside of a name is none.
fn last_sentence(text: &str) -> &str {
    let text = text.trim_end_matches(['.', '!', ':', '…']);
    let ends = text.match_indices(['\n', '.', '!', '?', ';']);
    let start = ends
        .map(|(at, end)| at + end.len())
        .rfind(|at| text[..*at].ends_with('\n') || text[*at..].starts_with(char::is_whitespace));
    text[start.unwrap_or(0)..].trim()
}

/// `name.ext`, of letters at the end.
fn is_file_name(word: &str) -> bool {
    word.rsplit_once('.').is_some_and(|(name, extension)| {
        !name.is_empty()
            && (1..=5).contains(&extension.len())
            && extension.chars().all(|c| c.is_ascii_alphanumeric())
            && extension.starts_with(|c: char| c.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unfinished(text: &str) -> bool {
        is_unfinished(text, |tool| ["filesystem", "terminal"].contains(&tool))
    }

    #[test]
    fn what_is_promised_or_written_as_a_call_is_no_answer() {
        for text in [
            "I'll create the file notes.md with your list.",
            "Sure! I will now write it to `report.txt`:",
            "I read both reports. Let me save the summary to summary.md.",
            "**I am going to go ahead and update the file.**",
            "Я створю файл notes.md.",
            "Гаразд. Зараз збережу список у файл!",
            "Сейчас создам файл с заметками.",
            "I'll write it:\n```json\n{\"name\": \"filesystem\", \"arguments\": {\"action\": \"list\"}}\n```",
            "{\"tool\": \"terminal\", \"command\": \"ls\"}",
            "Here:\n<tool_call>\n{\"function_name\": \"filesystem\", \"kwargs\": {\"path\": \"a\"}}\n</tool_call>",
            "[{\"call\": {\"name\": \"terminal\", \"params\": {\"command\": \"ls\"}}}]",
        ] {
            assert!(unfinished(text), "{text}");
        }
    }

    #[test]
    fn what_answers_asks_or_waits_is_left_alone() {
        for text in [
            "",
            "Paris.",
            "I created the file notes.md.",
            "I'll create the file notes.md. Is that right?",
            "If you like, I will save it to notes.md.",
            "Tell me the name, and I'll create the file once you have chosen.",
            "I will write you a poem.",
            "Якщо хочете, я збережу це у файл.",
            "Когда подтвердите, создам файл.",
            "Я збережу це в пам'яті.",
            "I will create the file. Done: notes.md is there.",
            "A call looks like this: {\"name\": \"filesystem\", \"arguments\": {}}. That is all.",
            "{\"name\": \"oven\", \"arguments\": {\"heat\": 200}}",
            "{\"name\": \"terminal\", \"version\": \"1.0\"}",
            "{\"type\": \"terminal\", \"font\": {\"size\": 12}}",
            "{\"tool\": \"terminal\"}",
        ] {
            assert!(!unfinished(text), "{text}");
        }
    }
}
