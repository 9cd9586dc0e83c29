//! What a server has, asked before anything is set up by it.

use super::{OpenAiBackend, OpenAiConfig, models};
use crate::llm::{Backend, LlmError};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::phrase::{Phrase, PhraseCode};
use crate::protocol::status::ModelInfo;

/// A server that answers, and what it lists.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerThere {
    /// Where its API is, as it is asked.
    pub address: String,
    pub models: Vec<ModelInfo>,
}

/// Asks a server for its models, within seconds. The key goes to this address and to no other.
///
/// # Errors
/// What is wrong with the address or the key, or with what the server says, and what to do.
pub async fn look(config: OpenAiConfig) -> Result<ServerThere, NaviError> {
    let backend = OpenAiBackend::new(config).map_err(|error| error.told())?;
    let address = backend.address();
    let answer = backend.list().await;
    let answer = answer.map_err(|error| told(&address, error))?;
    let list = models::read(&answer).ok_or_else(|| no_list(&address))?;
    Ok(ServerThere {
        address,
        models: list.models,
    })
}

/// In words for who has just entered it: what stands in the environment is not meant.
fn told(address: &str, error: LlmError) -> NaviError {
    let address = ("address", address.to_owned());
    let code = error.code();
    match error {
        LlmError::Unauthorized { status, message } => {
            let params = [
                address,
                ("status", status.to_string()),
                ("message", message),
            ];
            NaviError::said(code, Phrase::new(PhraseCode::LookKey, params))
        }
        LlmError::Unreachable { reason, .. } => {
            let silent = Phrase::new(PhraseCode::LookSilent, [address]);
            NaviError::said(code, silent.with("reason", reason))
        }
        LlmError::ModelNotFound { .. }
        | LlmError::Rejected {
            status: 404 | 405, ..
        }
        | LlmError::Malformed { .. } => no_list(&address.1),
        other => other.told(),
    }
}

fn no_list(address: &str) -> NaviError {
    let address = [("address", address.to_owned())];
    NaviError::said(
        ErrorCode::BackendError,
        Phrase::new(PhraseCode::LookNoList, address),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::fake_model::{Config, FakeModel};

    fn at(base_url: &str, api_key: Option<&str>) -> OpenAiConfig {
        OpenAiConfig {
            base_url: base_url.to_owned(),
            api_key: api_key.map(str::to_owned),
            default_model: None,
        }
    }

    #[tokio::test]
    async fn a_server_is_looked_at_with_its_key_alone() {
        let fake = FakeModel::start();
        fake.configure(Config {
            api_key: Some("sk-right".to_owned()),
            ..Config::default()
        });
        let there = look(at(&fake.url(), Some("sk-right"))).await.unwrap();
        assert_eq!(there.address, format!("{}/v1", fake.url()));
        assert!(!there.models.is_empty());

        let refused = look(at(&fake.url(), Some("sk-wrong"))).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::BackendUnauthorized);
        assert_eq!(refused.phrase.unwrap().code, PhraseCode::LookKey);
        assert!(!refused.message.contains("sk-wrong"));
        let gone = fake.url();
        drop(fake);
        let silent = look(at(&gone, None)).await.unwrap_err();
        assert_eq!(silent.phrase.unwrap().code, PhraseCode::LookSilent);
        let none = look(at("ftp://example.com", None)).await.unwrap_err();
        assert_eq!(none.code, ErrorCode::BackendUnavailable);
    }
}
