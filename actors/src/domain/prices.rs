//! What models cost, as a person wrote it into the price table (docs/observing.md).

use serde::Deserialize;
use wildmatch::WildMatch;

use crate::protocol::inspect::Cost;

/// How many tokens a price is for.
const PER: f64 = 1_000_000.0;

/// The prices of models, in one currency.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PriceTable {
    currency: String,
    /// The first that fits a model is its.
    #[serde(default, rename = "price")]
    prices: Vec<Price>,
}

/// The price of the models whose name fits.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Price {
    /// `*` stands for any text, `?` for any character.
    model: String,
    /// The backend that they are of; none where it is of no account.
    backend: Option<String>,
    /// Per million tokens.
    prompt: f64,
    completion: f64,
    /// Of tokens that the server had read before; none where these cost as much as others.
    cached: Option<f64>,
}

/// The tokens that calls of one model used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    pub backend: String,
    pub model: String,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// Of the prompts.
    pub cached_tokens: u64,
}

impl PriceTable {
    /// The table that a file's text says.
    ///
    /// # Errors
    /// What is wrong with it, with the line where that shows.
    pub fn parse(text: &str) -> Result<Self, String> {
        let table: Self =
            toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        let currency = table.currency.as_bytes();
        if currency.len() != 3 || !currency.iter().all(u8::is_ascii_uppercase) {
            return Err(format!(
                "currency: three capital letters, as in \"EUR\", are expected, not \"{}\"",
                table.currency
            ));
        }
        for price in &table.prices {
            let amounts = [("prompt", price.prompt), ("completion", price.completion)];
            let cached = price.cached.map(|amount| ("cached", amount));
            for (name, amount) in amounts.into_iter().chain(cached) {
                if !amount.is_finite() || amount < 0.0 {
                    return Err(format!(
                        "the price of \"{}\", {name}: a number that is not negative is expected, not {amount}",
                        price.model
                    ));
                }
            }
        }
        Ok(table)
    }

    /// Whether nothing has a price.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.prices.is_empty()
    }

    /// What this cost. None where no model of it has a price.
    #[must_use]
    pub fn cost(&self, used: &[Used]) -> Option<Cost> {
        let amounts = used.iter().filter_map(|used| {
            let price = self.prices.iter().find(|price| price.fits(used))?;
            Some(price.amount(used))
        });
        let amount = amounts.reduce(|sum, amount| sum + amount)?;
        Some(Cost {
            amount,
            currency: self.currency.clone(),
        })
    }
}

impl Price {
    fn fits(&self, used: &Used) -> bool {
        let mut backend = self.backend.iter();
        backend.all(|backend| *backend == used.backend)
            && WildMatch::new(&self.model).matches(&used.model)
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "a sum of tokens is far below 2^53"
    )]
    fn amount(&self, used: &Used) -> f64 {
        let cached = used.cached_tokens.min(used.prompt_tokens);
        let read = (used.prompt_tokens - cached) as f64 * self.prompt;
        let kept = cached as f64 * self.cached.unwrap_or(self.prompt);
        (read + kept + used.completion_tokens as f64 * self.completion) / PER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r#"
currency = "EUR"

[[price]]
model = "gpt-5-mini*"
prompt = 0.25
completion = 2

[[price]]
model = "gpt-5*"
backend = "openai"
prompt = 1.25
completion = 10
"#;

    fn used(backend: &str, model: &str, prompt_tokens: u64, completion_tokens: u64) -> Used {
        Used {
            backend: backend.to_owned(),
            model: model.to_owned(),
            prompt_tokens,
            completion_tokens,
            cached_tokens: 0,
        }
    }

    #[test]
    fn the_first_price_that_fits_a_model_is_its() {
        let table = PriceTable::parse(TABLE).unwrap();
        for (used, expected) in [
            (
                used("openai", "gpt-5-mini-2025", 4_000_000, 500_000),
                Some(2.0),
            ),
            (used("openai", "gpt-5", 1_000_000, 100_000), Some(2.25)),
            (used("openai", "gpt-5", 0, 0), Some(0.0)),
            (used("ollama", "gpt-5", 1_000_000, 100_000), None),
            (used("openai", "another", 1_000_000, 100_000), None),
        ] {
            let cost = table.cost(std::slice::from_ref(&used));
            assert_eq!(cost.map(|cost| cost.amount), expected, "{used:?}");
        }
    }

    #[test]
    fn tokens_that_were_read_before_have_a_price_of_their_own_where_one_is_said() {
        let with = |table: &str| {
            let mut used = used("openai", "gpt-5", 1_000_000, 100_000);
            used.cached_tokens = 800_000;
            let table = PriceTable::parse(table).unwrap();
            table.cost(&[used]).unwrap().amount
        };
        let near = |amount: f64, expected: f64| (amount - expected).abs() < 1e-9;
        assert!(near(with(TABLE), 2.25), "the full price counts");
        let priced = TABLE.replace("prompt = 1.25", "prompt = 1.25\ncached = 0.125");
        assert!(near(with(&priced), 1.35));
    }

    #[test]
    fn what_has_no_price_adds_nothing() {
        let table = PriceTable::parse(TABLE).unwrap();
        let mixed = [
            used("ollama", "qwen3", 9_000_000, 9_000_000),
            used("openai", "gpt-5", 1_000_000, 0),
            used("openai", "gpt-5-mini", 1_000_000, 0),
        ];
        let cost = table.cost(&mixed).unwrap();
        assert_eq!((cost.amount, cost.currency.as_str()), (1.5, "EUR"));
        assert_eq!(table.cost(&mixed[..1]), None);
        assert_eq!(PriceTable::default().cost(&mixed), None);
    }

    #[test]
    fn a_wrong_table_is_refused_with_the_place() {
        for (from, to, expected) in [
            ("prompt = 1.25", "prompt = \"much\"", "line 12"),
            ("prompt = 1.25", "prompts = 1.25", "line 12"),
            ("completion = 10\n", "", "missing field `completion`"),
            ("\"EUR\"", "\"euro\"", "currency: three capital letters"),
            ("prompt = 1.25", "prompt = -1", "\"gpt-5*\", prompt"),
            ("prompt = 1.25", "prompt = nan", "\"gpt-5*\", prompt"),
            (
                "prompt = 1.25",
                "prompt = 1.25\ncached = -1",
                "\"gpt-5*\", cached",
            ),
        ] {
            let problem = PriceTable::parse(&TABLE.replace(from, to)).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
