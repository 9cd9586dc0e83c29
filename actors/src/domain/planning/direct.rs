//! Requests that nobody needs to think about: no model is asked whether they want a plan.
//!
//! Only whole messages count, and only what can mean nothing else: a sum, a greeting, thanks, a
//! yes or a no. Everything else is for the model to sort.

/// A message longer than this says more than that.
const MAX_CHARS: usize = 80;

/// Words that a message may consist of: English, Ukrainian, Russian.
const SMALL_TALK: &str = "\
hi,hello,hey,good morning,good afternoon,good evening,good night,bye,goodbye,see you,how are you,\
thanks,thank you,thanks a lot,many thanks,thank you very much,yes,yeah,yep,no,nope,ok,okay,great,\
fine,\
привіт,вітаю,добрий день,доброго дня,добрий ранок,доброго ранку,добрий вечір,доброго вечора,\
на добраніч,до побачення,бувай,як справи,дякую,щиро дякую,дуже дякую,спасибі,так,ні,добре,гаразд,\
чудово,\
привет,здравствуй,здравствуйте,добрый день,доброе утро,добрый вечер,спокойной ночи,до свидания,\
пока,как дела,спасибо,большое спасибо,да,нет,хорошо,ладно,отлично";

/// What may stand beside them.
const BESIDE: &str = "navi,there,please,наві,будь ласка,нави,пожалуйста";

/// What may stand before a sum.
const ASKED: &str = "\
what is,what's,how much is,calculate,and,\
скільки буде,порахуй,обчисли,а,\
сколько будет,посчитай,вычисли,и";

/// Whether a request is as simple as that.
pub(super) fn is_trivial(request: &str) -> bool {
    let request = request.trim();
    if request.is_empty() || request.chars().nth(MAX_CHARS).is_some() {
        return false;
    }
    let text = request.to_lowercase();
    is_sum(&text) || is_small_talk(&text)
}

/// Numbers with signs of arithmetic between them, and at most a question around.
fn is_sum(text: &str) -> bool {
    let asked = ASKED.split(',').find_map(|words| {
        let rest = text.strip_prefix(words)?;
        rest.starts_with(' ').then_some(rest)
    });
    let is_asked = asked.is_some() || text.ends_with(['?', '=']);
    let sum = asked.unwrap_or(text);
    let sum = sum.trim_end_matches(['?', '=', '.', '!', ' ']);
    let is_sign = |c: char| "+-−*×·/÷:^%".contains(c);
    let is_number = |part: &str| part.contains(|c: char| c.is_ascii_digit());
    // A date, a telephone number or a version has such signs too, and no spaces around them.
    let is_plain = sum.contains(['+', '*', '×', '·', '÷', '^'])
        || [" - ", " − ", " / "].iter().any(|sign| sum.contains(sign));
    (is_asked || is_plain)
        && sum.split(is_sign).filter(|part| is_number(part)).count() > 1
        && sum
            .chars()
            .all(|c| c.is_ascii_digit() || is_sign(c) || "(). ,".contains(c))
}

/// Phrases of the lists and nothing else.
fn is_small_talk(text: &str) -> bool {
    let words: Vec<&str> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let mut rest = words.as_slice();
    let mut is_said = false;
    while !rest.is_empty() {
        let said = longest(rest, SMALL_TALK);
        let Some(length) = said.or_else(|| longest(rest, BESIDE)) else {
            return false;
        };
        is_said |= said.is_some();
        rest = &rest[length..];
    }
    is_said
}

/// How many of these words the longest phrase has that they begin with.
fn longest(words: &[&str], phrases: &str) -> Option<usize> {
    let phrases = phrases.split(',').map(|phrase| phrase.split(' '));
    phrases
        .filter(|phrase| {
            let mut words = words.iter();
            phrase.clone().all(|word| words.next() == Some(&word))
        })
        .map(Iterator::count)
        .max()
}
