//! Looking for a model server on this machine.
#![allow(clippy::unwrap_used)]

use std::net::TcpListener;
use std::time::{Duration, Instant};

use hermes_agent::local_servers::{Candidate, candidates, find};
use hermes_testkit::{ModelServer, unused_base_url};

fn candidate(name: &str, base_url: String) -> Candidate {
    Candidate { name: name.into(), base_url }
}

#[tokio::test]
async fn the_first_in_the_order_of_preference_that_answers_is_taken() {
    let (first, second) = (ModelServer::start([]), ModelServer::start([]));
    let list = [
        candidate("nobody", unused_base_url()),
        candidate("first", first.base_url()),
        candidate("second", second.base_url()),
    ];
    let found = find(&list, Duration::from_secs(10)).await.unwrap();
    assert_eq!((found.name.as_str(), found.model.as_str()), ("first", "test-model"));
    assert_eq!(found.base_url, first.base_url());
}

#[tokio::test]
async fn silent_servers_are_waited_for_together_and_not_long() {
    let silent: Vec<TcpListener> = (0..8).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let address = |listener: &TcpListener| format!("http://{}/v1", listener.local_addr().unwrap());
    let list: Vec<Candidate> = silent.iter().map(|listener| candidate("silent", address(listener))).collect();
    let began = Instant::now();
    assert_eq!(find(&list, Duration::from_secs(2)).await, None);
    // One after the other they would take sixteen seconds.
    assert!(began.elapsed() < Duration::from_secs(12), "{:?}", began.elapsed());
}

#[test]
fn the_known_programs_are_looked_for_on_their_own_ports() {
    let ports: Vec<String> = candidates().into_iter().map(|c| format!("{} {}", c.name, c.base_url)).collect();
    for port in ["Ollama http://127.0.0.1:11434", "LM Studio http://127.0.0.1:1234", "llama.cpp http://127.0.0.1:8080"]
    {
        assert!(ports.iter().any(|known| known.starts_with(port)), "{ports:?}");
    }
}
