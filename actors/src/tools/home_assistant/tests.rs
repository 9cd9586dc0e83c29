//! `home_assistant` against a server that answers as Home Assistant does.

use std::path::Path;
use std::sync::Arc;

use wiremock::matchers::{body_json, method, path, path_regex, query_param};
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use super::*;
use crate::tools::fake_session::{FakeSession, context};

const TOKEN: &str = "token-of-the-tests";

fn state(id: &str, state: &str, attributes: &Value) -> Value {
    json!({
        "entity_id": id, "state": state, "attributes": attributes,
        "last_changed": "2026-05-01T10:00:00.123456+00:00",
        "last_reported": "2026-05-01T10:00:00.123456+00:00",
        "last_updated": "2026-05-01T10:00:00.123456+00:00",
        "context": {"id": "01HX", "parent_id": null, "user_id": null},
    })
}

fn states() -> Value {
    json!([
        state(
            "light.kitchen",
            "on",
            &json!({"friendly_name": "Kitchen", "brightness": 120, "supported_color_modes": ["brightness"]})
        ),
        state(
            "light.bedroom",
            "off",
            &json!({"friendly_name": "Bedroom lamp"})
        ),
        state(
            "sensor.kitchen_temperature",
            "21.5",
            &json!({"friendly_name": "Kitchen temperature", "unit_of_measurement": "°C", "device_class": "temperature"})
        ),
        state(
            "lock.front_door",
            "locked",
            &json!({"friendly_name": "Front door"})
        ),
    ])
}

fn services() -> Value {
    json!([
        {"domain": "light", "services": {
            "turn_on": {"name": "Turn on", "description": "Turns on one or more lights.", "target": {"entity": [{"domain": ["light"]}]},
                "fields": {"brightness_pct": {"selector": {"number": {}}}, "advanced_fields": {"collapsed": true, "fields": {"flash": {}}}}},
            "turn_off": {"name": "Turn off", "description": "", "target": {}, "fields": {}},
        }},
        {"domain": "weather", "services": {
            "get_forecasts": {"name": "Get forecasts", "description": "Gets forecasts.", "fields": {"type": {"required": true}}, "response": {"optional": false}},
        }},
    ])
}

/// What a real instance answers, with its own words for what is wrong.
async fn home() -> MockServer {
    let server = MockServer::start().await;
    let denied = |request: &Request| {
        let token = request.headers.get("authorization");
        token.is_none_or(|token| token != &format!("Bearer {TOKEN}"))
    };
    Mock::given(denied)
        .respond_with(ResponseTemplate::new(401).set_body_string("401: Unauthorized"))
        .with_priority(1)
        .mount(&server)
        .await;
    let answers = [
        (
            "/api/states",
            ResponseTemplate::new(200).set_body_json(states()),
        ),
        (
            "/api/services",
            ResponseTemplate::new(200).set_body_json(services()),
        ),
        (
            "/api/states/light.kitchen",
            ResponseTemplate::new(200).set_body_json(&states()[0]),
        ),
    ];
    for (at, answer) in answers {
        Mock::given(method("GET"))
            .and(path(at))
            .respond_with(answer)
            .mount(&server)
            .await;
    }
    let missing = ResponseTemplate::new(404).set_body_json(json!({"message": "Entity not found."}));
    Mock::given(path_regex("^/api/states/.+"))
        .respond_with(missing)
        .with_priority(9)
        .mount(&server)
        .await;
    Mock::given(method("POST"))
        .and(path("/api/services/light/turn_on"))
        .and(body_json(
            json!({"entity_id": "light.kitchen", "brightness_pct": 50}),
        ))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!([states()[0]])))
        .mount(&server)
        .await;
    Mock::given(method("POST"))
        .and(path("/api/services/light/turn_on"))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!([])))
        .with_priority(6)
        .mount(&server)
        .await;
    Mock::given(path("/api/services/weather/get_forecasts"))
        .and(query_param("return_response", ""))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({
            "changed_states": [],
            "service_response": {"weather.home": {"forecast": [{"temperature": 7}]}},
        })))
        .mount(&server)
        .await;
    Mock::given(path("/api/services/weather/get_forecasts"))
        .respond_with(ResponseTemplate::new(400).set_body_json(json!({
            "message": "Service call requires responses but caller did not ask for responses. Add ?return_response to query parameters.",
        })))
        .with_priority(6)
        .mount(&server)
        .await;
    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(400).set_body_string("400: Bad Request"))
        .with_priority(9)
        .mount(&server)
        .await;
    Mock::given(path_regex("^/api/history/period/[0-9T:Z-]+$"))
        .and(query_param("filter_entity_id", "sensor.kitchen_temperature"))
        .and(query_param("minimal_response", ""))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!([[
            {"entity_id": "sensor.kitchen_temperature", "state": "20.5", "attributes": {}, "last_changed": "2026-05-01T09:00:00+00:00", "last_updated": "2026-05-01T09:00:00+00:00"},
            {"state": "unavailable", "last_changed": "2026-05-01T09:30:00.5+02:00"},
            {"state": "21.5", "last_changed": "2026-05-01T10:00:00+00:00"},
        ]])))
        .mount(&server)
        .await;
    Mock::given(path_regex("^/api/history/period/"))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!([])))
        .with_priority(9)
        .mount(&server)
        .await;
    server
}

fn tool(server: &MockServer, token: &str) -> HomeAssistant {
    HomeAssistant::new(Some(HomeAssistantConfig {
        url: Url::parse(&server.uri()).unwrap(),
        token: ApiKey::new(token.to_owned()).unwrap(),
    }))
}

fn here() -> ToolContext {
    context(&Arc::new(FakeSession::default()), Path::new("/"))
}

async fn answer(server: &MockServer, args: Value) -> String {
    match tool(server, TOKEN).call(args, here()).await {
        Ok(output) => output.text,
        Err(error) => format!("error: {error}"),
    }
}

#[tokio::test]
async fn states_are_found_by_kind_words_and_id() {
    let home = home().await;
    assert_eq!(
        answer(&home, json!({"action": "states", "domain": "light"})).await,
        "light.kitchen: on (Kitchen)\nlight.bedroom: off (Bedroom lamp)"
    );
    assert_eq!(
        answer(&home, json!({"action": "states", "search": "kitchen TEMP"})).await,
        "sensor.kitchen_temperature: 21.5 °C (Kitchen temperature)"
    );
    let all = answer(&home, json!({"action": "states"})).await;
    assert_eq!(all.lines().count(), 4, "{all}");
    let none = answer(&home, json!({"action": "states", "search": "garage"})).await;
    assert_eq!(none, "no entity fits; there are light 2, lock 1, sensor 1");
    let one = answer(
        &home,
        json!({"action": "states", "entity_id": "Light.Kitchen"}),
    )
    .await;
    assert!(
        one.starts_with("light.kitchen: on (Kitchen)\nlast changed: 2026-05-01"),
        "{one}"
    );
    assert!(one.contains("\"brightness\": 120"), "{one}");
    let missing = answer(
        &home,
        json!({"action": "states", "entity_id": "light.kitchn"}),
    )
    .await;
    assert!(
        missing
            .starts_with("error: there is no entity light.kitchn; the nearest are light.kitchen"),
        "{missing}"
    );
    let wrong = answer(&home, json!({"action": "states", "entity_id": "../config"})).await;
    assert!(wrong.contains("is no entity id"), "{wrong}");
}

#[tokio::test]
async fn services_are_told_with_their_fields() {
    let home = home().await;
    let all = answer(&home, json!({"action": "services"})).await;
    assert!(
        all.starts_with("light: turn_off, turn_on\nweather: get_forecasts"),
        "{all}"
    );
    let light = answer(&home, json!({"action": "services", "domain": "light"})).await;
    assert!(
        light.contains("light.turn_on: Turns on one or more lights. Fields: flash, brightness_pct [needs entity_id]")
            || light.contains("light.turn_on: Turns on one or more lights. Fields: brightness_pct, flash [needs entity_id]"),
        "{light}"
    );
    let none = answer(&home, json!({"action": "services", "domain": "garage"})).await;
    assert_eq!(
        none,
        "error: there are no services of garage; the domains are light, weather"
    );
}

#[tokio::test]
async fn a_service_is_called_and_what_changed_is_told() {
    let home = home().await;
    let call = json!({"action": "call_service", "service": "light.turn_on", "entity_id": "light.kitchen", "data": {"brightness_pct": 50}});
    assert_eq!(
        answer(&home, call).await,
        "called light.turn_on; 1 state changed:\nlight.kitchen: on (Kitchen)"
    );
    // The halves apart, and a list.
    let call = json!({"action": "call_service", "domain": "light", "service": "turn_on", "entity_id": "light.kitchen, light.bedroom"});
    assert_eq!(
        answer(&home, call).await,
        "called light.turn_on; no state changed at once"
    );
    // Home Assistant says nothing of an entity that is not there.
    let call =
        json!({"action": "call_service", "service": "light.turn_on", "entity_id": "light.kitchem"});
    let text = answer(&home, call).await;
    assert!(
        text.contains("there is no entity light.kitchem; the nearest are light.kitchen"),
        "{text}"
    );
    let call = json!({"action": "call_service", "service": "weather.get_forecasts", "data": {"type": "daily"}});
    let text = answer(&home, call).await;
    assert!(text.contains("\"temperature\": 7"), "{text}");
}

#[tokio::test]
async fn what_is_refused_is_explained() {
    let home = home().await;
    for (service, said) in [
        (
            "light.explode",
            "there is no service light.explode; light has turn_off, turn_on",
        ),
        (
            "garage.open",
            "there is no service garage.open; services lists those there are",
        ),
        (
            "light.turn_off",
            "Home Assistant refused light.turn_off: 400: Bad Request",
        ),
        ("", "call_service needs `service`, for example {"),
        ("turn_on", "`turn_on` is no service; one looks like"),
        ("light/../../config.x", "is no service; one looks like"),
    ] {
        let call = json!({"action": "call_service", "service": service});
        let text = answer(&home, call).await;
        assert!(text.contains(said), "{service}: {text}");
    }
}

#[tokio::test]
async fn a_history_has_its_changes_and_their_range() {
    let home = home().await;
    let args = json!({"action": "history", "entity_id": "sensor.kitchen_temperature", "hours": 3});
    assert_eq!(
        answer(&home, args).await,
        "sensor.kitchen_temperature, 3 states (UTC), from 20.5 to 21.5\n\
         2026-05-01 09:00:00 20.5\n2026-05-01 07:30:00 unavailable\n2026-05-01 10:00:00 21.5"
    );
    let args = json!({"action": "history", "entity_id": "light.kitchen"});
    assert_eq!(
        answer(&home, args).await,
        "light.kitchen has no history in the last 24 hours"
    );
    let args = json!({"action": "history", "entity_id": "light.none"});
    assert!(
        answer(&home, args)
            .await
            .contains("there is no entity light.none")
    );
    let args = json!({"action": "history", "entity_id": "light.kitchen", "hours": 1000});
    assert!(answer(&home, args).await.contains("from 1 to 168"));
    assert!(
        answer(&home, json!({"action": "history"}))
            .await
            .contains("history needs `entity_id`, for example {")
    );
}

#[tokio::test]
async fn the_token_is_in_no_error() {
    let home = home().await;
    let tool = tool(&home, "wrong-token");
    assert!(!format!("{tool:?}").contains("wrong-token"));
    let error = tool
        .call(json!({"action": "states"}), here())
        .await
        .unwrap_err();
    assert!(
        error.0.contains("refuses the token") && error.0.contains("HOME_ASSISTANT_TOKEN"),
        "{error}"
    );
    assert!(!error.0.contains("wrong-token"), "{error}");

    let elsewhere = MockServer::start().await;
    let server = MockServer::start().await;
    let away = ResponseTemplate::new(302).insert_header("location", elsewhere.uri().as_str());
    Mock::given(path("/api/states"))
        .respond_with(away)
        .mount(&server)
        .await;
    let text = answer(&server, json!({"action": "states"})).await;
    assert!(
        text.contains("a redirect; the owner should set HOME_ASSISTANT_URL"),
        "{text}"
    );
    assert!(elsewhere.received_requests().await.unwrap().is_empty());
}

#[tokio::test]
async fn reading_is_a_read_and_a_call_is_asked_about() {
    let home = home().await;
    let tool = tool(&home, TOKEN);
    assert_eq!(tool.effect(&json!({"action": "states"})), Effect::Read);
    assert_eq!(tool.effect(&json!({"action": "history"})), Effect::Read);
    let call =
        json!({"action": "call_service", "service": "light.turn_on", "entity_id": "light.kitchen"});
    assert_eq!(tool.effect(&call), Effect::Host);
    let proposal = tool.proposal(&call, &here()).await.unwrap();
    assert_eq!(
        proposal.summary.to_string(),
        "call light.turn_on for light.kitchen in the smart home"
    );
    assert_eq!(proposal.rule.unwrap().key, "light.turn_on");
    for service in [
        "lock.unlock",
        "script.open_up",
        "siren.turn_on",
        "new.thing",
    ] {
        let call = json!({"action": "call_service", "service": service});
        assert_eq!(tool.proposal(&call, &here()).await.unwrap().rule, None);
    }
    let none = HomeAssistant::new(None);
    assert!(none.unavailable().unwrap().contains("HOME_ASSISTANT_URL"));
}
