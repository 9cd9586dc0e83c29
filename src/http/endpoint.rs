//! A path with its methods. Each says what it does, and nobody gets past that who may not: there is
//! no other way to have a route.

use std::sync::Arc;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{AppService, HttpServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{self, HeaderValue};
use actix_web::middleware::{Next, from_fn};
use actix_web::web::PayloadConfig;
use actix_web::{
    Error, FromRequest, Handler, HttpMessage as _, HttpRequest, Resource, Responder, web,
};
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::error::{ErrorCode, NaviError};

use super::error::ApiError;
use super::{gate, turns};
use crate::access::Principal;
use crate::doors;

/// See the module.
pub(crate) struct Endpoint {
    path: String,
    resource: Resource,
    methods: Vec<(Method, Option<Action>)>,
    bodies: Bodies,
    /// The gate of who asks is its own, and not that of all around it.
    has_login: bool,
}

/// How large bodies may be.
#[derive(Clone, Copy)]
enum Bodies {
    Usual,
    /// They are read whole all the same, and take turns.
    Large,
}

/// The resource at this path; it takes no method yet.
pub(crate) fn endpoint(path: &str) -> Endpoint {
    Endpoint {
        path: without_patterns(path),
        resource: web::resource(path),
        methods: Vec::new(),
        bodies: Bodies::Usual,
        has_login: false,
    }
}

/// A path as the document has it: a name says nothing of what it may match.
fn without_patterns(path: &str) -> String {
    let parts = path.split('/').map(|part| match part.split_once(':') {
        Some((name, _)) if name.starts_with('{') => format!("{name}}}"),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}

impl Endpoint {
    /// A method for whoever may do this; for everybody, where it is `None`.
    pub(crate) fn on<F, Args>(
        mut self,
        method: Method,
        action: impl Into<Option<Action>>,
        handler: F,
    ) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        let route = web::method(method.clone()).to(handler);
        self.resource = self.resource.route(route);
        self.methods.push((method, action.into()));
        self
    }

    /// The same for whoever is signed in, where nothing around it asks for that.
    pub(crate) fn behind_login(self) -> Self {
        Self {
            has_login: true,
            ..self
        }
    }

    /// How large the body of a request may be, which is read whole.
    pub(crate) fn body_limit(mut self, bytes: usize) -> Self {
        self.resource = self.resource.app_data(PayloadConfig::new(bytes));
        self.bodies = Bodies::Large;
        self
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// What each method does; `None`: it is for everybody.
    pub(crate) fn methods(&self) -> &[(Method, Option<Action>)] {
        &self.methods
    }
}

impl HttpServiceFactory for Endpoint {
    fn register(self, config: &mut AppService) {
        let allowed: Vec<&str> = self.methods.iter().map(|(it, _)| it.as_str()).collect();
        let allowed = allowed.join(", ");
        let methods: Arc<[(Method, Option<Action>)]> = self.methods.into();
        let bodies = self.bodies;
        let resource = self
            .resource
            .default_service(web::to(move |request: HttpRequest| {
                let response = other_method(&request, &allowed);
                async move { response }
            }))
            .wrap(from_fn(move |request, next| {
                let methods = Arc::clone(&methods);
                async move { pass(&methods, bodies, request, next).await }
            }));
        if self.has_login {
            let resource = resource.wrap(from_fn(gate::require_login));
            resource.register(config);
        } else {
            resource.register(config);
        }
    }
}

/// The gate of what is asked: what it does, whether this may be done by whoever asks, and whether
/// it is their turn.
async fn pass(
    methods: &[(Method, Option<Action>)],
    bodies: Bodies,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let asked = methods.iter().find(|(it, _)| it == request.method());
    if let Some((_, Some(action))) = asked {
        let principal = request.extensions().get::<Principal>().copied();
        let checked = principal
            .ok_or_else(|| NaviError::new(ErrorCode::Unauthorized, "sign in first"))
            .and_then(|who| who.grant.check(*action));
        if let Err(error) = checked {
            let response = doors::refusal(request.path(), &ApiError(error));
            return Ok(request.into_response(response));
        }
    }
    let turn = match bodies {
        Bodies::Usual => Ok(None),
        Bodies::Large => turns::wait(&request).await,
    };
    let turn = match turn {
        Ok(turn) => turn,
        Err(error) => {
            let response = doors::refusal(request.path(), &error);
            return Ok(request.into_response(response));
        }
    };
    let answer = next.call(request);
    let answer = match turn {
        Some(turn) => turns::hold(turn, answer).await,
        None => answer.await,
    };
    Ok(answer?.map_into_boxed_body())
}

/// Other methods are answered with 405 and the list of those that there are.
fn other_method(request: &HttpRequest, allowed: &str) -> actix_web::HttpResponse {
    let message = format!("this path takes {allowed}");
    let error = NaviError::new(ErrorCode::MethodNotAllowed, message);
    let mut response = doors::refusal(request.path(), &ApiError(error));
    if let Ok(allowed) = HeaderValue::from_str(allowed) {
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    response
}
