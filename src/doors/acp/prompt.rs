//! What a prompt comes to as a message.

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    BlobResourceContents, ContentBlock, EmbeddedResourceResource,
};
use navi_actors::protocol::command::UserInput;

/// What stands in place of words where a prompt has none.
const WORDLESS: &str = "(no words)";

/// The message of these blocks: texts as they stand, links in their place, what came embedded
/// behind them.
///
/// # Errors
/// What of it cannot be taken.
pub(super) fn message(blocks: Vec<ContentBlock>, client_id: String) -> Result<UserInput, Error> {
    let (mut text, mut embedded, mut images) = (String::new(), String::new(), Vec::new());
    for block in blocks {
        match block {
            ContentBlock::Text(block) => text.push_str(&block.text),
            ContentBlock::Image(block) => images.push(block.data),
            ContentBlock::ResourceLink(link) => text.push_str(&reference(&link.name, &link.uri)),
            ContentBlock::Resource(block) => match block.resource {
                EmbeddedResourceResource::TextResourceContents(resource) => {
                    text.push_str(&reference(name_of(&resource.uri), &resource.uri));
                    let (uri, content) = (&resource.uri, &resource.text);
                    embedded.push_str(&format!("\n\n<file uri=\"{uri}\">\n{content}\n</file>"));
                }
                EmbeddedResourceResource::BlobResourceContents(resource) if is_image(&resource) => {
                    text.push_str(&reference(name_of(&resource.uri), &resource.uri));
                    images.push(resource.blob);
                }
                EmbeddedResourceResource::BlobResourceContents(resource) => {
                    return Err(not_taken(&resource.uri));
                }
                _ => return Err(not_taken("an embedded resource of an unknown kind")),
            },
            ContentBlock::Audio(_) => return Err(not_taken("audio")),
            _ => return Err(not_taken("a block of an unknown kind")),
        }
    }
    let words = if text.trim().is_empty() {
        WORDLESS
    } else {
        &text
    };
    Ok(UserInput {
        content: format!("{words}{embedded}"),
        images,
        client_id: Some(client_id),
        ..UserInput::default()
    })
}

fn reference(name: &str, uri: &str) -> String {
    format!("[@{name}]({uri})")
}

/// The last part of an address.
fn name_of(uri: &str) -> &str {
    let path = uri.split(['?', '#']).next().unwrap_or(uri);
    let name = path.trim_end_matches('/').rsplit('/').next();
    name.filter(|name| !name.is_empty()).unwrap_or(uri)
}

fn is_image(resource: &BlobResourceContents) -> bool {
    let kind = resource.mime_type.as_deref().unwrap_or_default();
    kind.starts_with("image/")
}

fn not_taken(what: &str) -> Error {
    super::invalid(format!(
        "{what} cannot be taken: a prompt has text, links, images and embedded text"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(blocks: serde_json::Value) -> Result<UserInput, Error> {
        message(serde_json::from_value(blocks).unwrap(), "1".to_owned())
    }

    #[test]
    fn links_stand_in_their_place_and_what_is_embedded_behind() {
        let input = read(json!([
            {"type": "text", "text": "Compare "},
            {"type": "resource_link", "name": "a.rs", "uri": "file:///p/a.rs"},
            {"type": "text", "text": " with "},
            {"type": "resource", "resource": {"uri": "file:///p/b.rs#L1", "text": "fn b() {}"}},
            {"type": "text", "text": "."},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        ]))
        .unwrap();
        assert_eq!(
            input.content,
            "Compare [@a.rs](file:///p/a.rs) with [@b.rs](file:///p/b.rs#L1).\n\n\
             <file uri=\"file:///p/b.rs#L1\">\nfn b() {}\n</file>"
        );
        assert_eq!(input.images, ["aGk="]);
    }

    #[test]
    fn an_image_alone_is_a_message_and_what_nobody_can_read_is_refused() {
        let image = read(json!([{"type": "image", "data": "aGk=", "mimeType": "image/png"}]));
        assert_eq!(image.unwrap().content, WORDLESS);
        let blob =
            json!([{"type": "resource", "resource": {"uri": "file:///a.bin", "blob": "AA=="}}]);
        let error = read(blob).unwrap_err();
        assert_eq!(i32::from(error.code), -32602);
        assert!(error.message.starts_with("file:///a.bin"), "{error}");
    }
}
