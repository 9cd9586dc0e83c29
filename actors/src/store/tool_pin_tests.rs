//! Tools from outside that were allowed.

use super::testing::{TestDb, at, on_both};
use super::tool_pins::ToolPin;

on_both!(an_allowance_is_kept_replaced_and_taken_back);

fn pin(name: &str, sha256: &str) -> ToolPin {
    ToolPin {
        name: name.to_owned(),
        source: "user".to_owned(),
        sha256: sha256.to_owned(),
        allowed_by: None,
        allowed_at: at(1),
    }
}

async fn an_allowance_is_kept_replaced_and_taken_back(db: TestDb) {
    let store = db.open().await;
    assert_eq!(store.tool_pins().await.unwrap(), []);
    store.pin_tools(Vec::new()).await.unwrap();
    store
        .pin_tools(vec![pin("b", "1"), pin("a", "2")])
        .await
        .unwrap();
    assert_eq!(
        store.tool_pins().await.unwrap(),
        [pin("a", "2"), pin("b", "1")]
    );

    let by_owner = ToolPin {
        allowed_by: Some(store.local_user().await.unwrap().id),
        allowed_at: at(2),
        ..pin("a", "3")
    };
    store.pin_tools(vec![by_owner.clone()]).await.unwrap();
    assert_eq!(store.tool_pins().await.unwrap()[0], by_owner);

    assert!(store.unpin_tool("a").await.unwrap());
    assert!(!store.unpin_tool("a").await.unwrap());
    assert_eq!(store.tool_pins().await.unwrap(), [pin("b", "1")]);
}
