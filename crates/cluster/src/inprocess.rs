//! A kube client whose requests reach the API server as function calls: no socket, no TLS, no copy of the body.

use homeostat_access::User;
use homeostat_apiserver::ApiServer;
use kube::client::Body;
use tower::Service as _;

/// A client that is always `user`: the server trusts callers in its own process.
pub(crate) fn client(server: ApiServer, user: User) -> kube::Client {
    let service = tower::service_fn(move |mut request: http::Request<Body>| {
        request.extensions_mut().insert(user.clone());
        let mut server = server.clone();
        server.call(request)
    });
    kube::Client::new(service, "default")
}
