//! Owners, quotas and lifetimes of shared tensors.

use serde_json::json;

use super::share::Stranger;
use super::*;
use crate::server::until;

const KEYS: [&str; 3] = ["one-0123456789abcdef", "two-0123456789abcdef", "tri-0123456789abcdef"];

#[test]
fn a_tensor_is_its_keys_own_and_opening_it_a_right_apart() {
    let server = Server::start_configured(&format!(
        "[server]\napi_keys = [\"{}\"]\nhandle_keys = [\"{}\"]\nadmin_keys = [\"{}\"]\n",
        KEYS[0], KEYS[1], KEYS[2]
    ));
    // Zero is text, as the content of an answer here must be.
    let body = json!({"data_b64": base64(&bytes_of(&[0.0])), "cuda_device": -1}).to_string();
    for (at, key) in KEYS.iter().enumerate() {
        let headers = [("Content-Type", "application/json"), ("X-API-Key", key)];
        let held = server.post("/tensors/from-array", &headers, body.as_bytes());
        assert_eq!(held.status, 200, "{}", held.text);
        let path = format!("/tensors/{}", held.json["tensor_id"].as_str().unwrap());
        for (other, key) in KEYS.iter().enumerate() {
            let get = |path: &str| server.get_with(path, &[("X-API-Key", key)]);
            let expected = if other == at { 200 } else { 404 };
            assert_eq!(get(&path).status, expected);
            assert_eq!(get(&format!("{path}/data?format=raw")).status, expected);
            assert_eq!(get("/tensors").json["count"], u32::from(other <= at));
            let open = get(&format!("{path}/handle"));
            match (at == other, other) {
                (_, 0) => {
                    assert_eq!((open.status, &open.json["code"]), (403, &json!("forbidden")));
                    assert!(open.json["error"].as_str().unwrap().contains("handle_keys"));
                }
                _ => assert_eq!(open.status, expected, "{}", open.text),
            }
        }
    }
    assert_eq!(server.get("/tensors").status, 401);
}

#[test]
fn a_key_holds_no_more_than_it_may() {
    let page = 2 << 20;
    let server = Server::start_configured(&format!(
        "[tensors]\nmax_bytes_per_key = {}\nmax_count_per_key = 3\n",
        2 * page
    ));
    let first = held(&server, 0, &[1.0]);
    let second = held(&server, 0, &[2.0]);
    let full = array(&server, 0, &[3.0], json!({}));
    assert_eq!((full.status, &full.json["code"]), (429, &json!("quota_exceeded")), "{}", full.text);
    assert!(full.json["error"].as_str().unwrap().contains("max_bytes_per_key"), "{}", full.text);
    let too_large = array(&server, -1, &vec![0.0; page], json!({}));
    assert_eq!(too_large.status, 413, "{}", too_large.text);
    // The one that was used last stays.
    floats(&server, &first);
    let evicting = array(&server, 0, &[3.0], json!({"evict": true}));
    assert_eq!(evicting.status, 200, "{}", evicting.text);
    let gone = server.get(&format!("/tensors/{second}"));
    assert_eq!((gone.status, &gone.json["code"]), (410, &json!("tensor_gone")), "{}", gone.text);
    assert_eq!(floats(&server, &first), [1.0]);
    // What somebody has open is not evicted.
    let _open = Stranger::open(&server, &first, 1.0);
    let third = evicting.json["tensor_id"].as_str().unwrap();
    let _other = Stranger::open(&server, third, 1.0);
    assert_eq!(array(&server, 0, &[4.0], json!({"evict": true})).status, 429);
    assert_eq!(server.delete(&format!("/tensors/{first}")).status, 200);
    assert_eq!(array(&server, 0, &[4.0], json!({})).status, 429, "its memory is not free yet");
    let lease = _open.handle["lease_id"].as_str().unwrap();
    assert_eq!(server.delete(&format!("/tensor-leases/{lease}")).status, 200);
    held(&server, 0, &[4.0]);
}

/// A client that dies gives back what it had open, since no heartbeat comes of it any more.
#[test]
fn the_lease_of_a_dead_client_ends() {
    let server = Server::start_configured("[tensors]\nlease_s = 1\n");
    let id = held(&server, -1, &[1.0]);
    let open = Stranger::open(&server, &id, 1.0);
    let lease = format!("/tensor-leases/{}", open.handle["lease_id"].as_str().unwrap());
    open.kill();
    assert_eq!(server.delete(&format!("/tensors/{id}")).status, 200);
    until("the lease ends", || (server.get("/tensors").json["held_bytes"] == 0).then_some(()));
    assert_eq!(server.delete(&lease).json["code"], "no_such_lease");
}

#[test]
fn what_nobody_uses_expires() {
    let server = Server::start();
    let kept = held(&server, -1, &[1.0]);
    let short = array(&server, -1, &[1.0], json!({"ttl_s": 0.5}));
    let path = format!("/tensors/{}", short.json["tensor_id"].as_str().unwrap());
    assert!(short.json["expires_in_s"].as_f64().unwrap() <= 0.5);
    // Looking at it is no use of it.
    let gone =
        until("it expires", || Some(server.get(&path)).filter(|answer| answer.status != 200));
    assert_eq!((gone.status, &gone.json["code"]), (410, &json!("tensor_gone")), "{}", gone.text);
    assert_eq!(server.get("/tensors").json["count"], 1);
    assert_eq!(floats(&server, &kept), [1.0]);
}

/// Heartbeats keep a lease for as long as they come.
#[test]
fn a_heartbeat_prolongs_a_lease() {
    let server = Server::start();
    let id = held(&server, -1, &[1.0]);
    let open = Stranger::open(&server, &id, 2.0);
    let lease = format!("/tensor-leases/{}", open.handle["lease_id"].as_str().unwrap());
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let put = |path: &str| agent.put(format!("{}{path}", server.url)).send_empty().unwrap();
    assert_eq!(put(&lease).status(), 200);
    assert_eq!(server.delete(&lease).status, 200);
    assert_eq!(put(&lease).status(), 404);
    assert_eq!(server.get(&format!("/tensors/{id}")).json["leases"], 0);
}
