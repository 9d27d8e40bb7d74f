//! What the controllers are granted beyond the reference's roles: no more than is missing there.
//!
//! That it is enough, every scenario shows: [`crate::virtual_time`] lets no request of theirs be refused for rights.

use homeostat_access::{Attributes, Policy, User, bootstrap};
use homeostat_controllers::{CONTROLLERS, NAMESPACE, roles};

#[test]
fn each_controller_is_granted_what_the_references_roles_lack_and_no_more() {
    let defaults = bootstrap::objects();
    let reference = Policy::from_objects(&defaults);
    let granted = roles();
    let whole = Policy::from_objects(defaults.iter().chain(&granted));
    for controller in CONTROLLERS {
        let Some(account) = controller.account else { continue };
        let user = User::service_account(NAMESPACE, account, "");
        for (group, resource, verbs) in controller.beyond {
            let (resource, sub) = resource.split_once('/').unwrap_or((resource, ""));
            for verb in *verbs {
                let a = Attributes::resource(&user, verb, group, resource).subresource(sub).namespace("d");
                assert!(
                    !reference.allows(&a).allowed,
                    "{}: {verb} {resource}/{sub} is there",
                    controller.name
                );
                assert!(whole.allows(&a).allowed, "{}: {verb} {resource}/{sub} is missing", controller.name);
            }
        }
        let secrets = Attributes::resource(&user, "list", "", "secrets");
        let reads_all = ["generic-garbage-collector", "namespace-controller", "resourcequota-controller"];
        assert_eq!(whole.allows(&secrets).allowed, reads_all.contains(&account), "{controller:?}");
    }
}
