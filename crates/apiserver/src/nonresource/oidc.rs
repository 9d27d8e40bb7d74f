//! What verifiers of service account tokens ask for: the issuer's configuration and its keys.

use homeostat_model::Status;
use homeostat_model::status::Result;

use crate::body::Body;
use crate::object;
use crate::respond::{Answer, Content};
use crate::server::Server;

pub(super) fn configuration(server: &Server) -> Result<Answer> {
    let keys = format!("https://{}/openid/v1/jwks", server.config.advertise);
    Ok(Answer::value(server.authority.authenticator.issuer.openid_configuration(&keys)))
}

pub(super) fn keys(server: &Server) -> Result<Answer> {
    let keys = server.authority.authenticator.issuer.jwks().map_err(Status::internal)?;
    let body = Body::full(object::to_bytes(&keys));
    Ok(Answer::new(http::StatusCode::OK, Content::Raw("application/jwk-set+json", body)))
}
