//! Order in which owners get permits.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::{Owner, Pool, PoolBounds, PoolFull, PoolPermit};

type Taking<'a> = Pin<Box<dyn Future<Output = Result<PoolPermit, PoolFull>> + 'a>>;

const PLAIN: PoolBounds = PoolBounds { places: 2, extra: 0, waiting: 100, shared: false, least: 1 };

fn owner(name: &str) -> Owner {
    Owner::named(name)
}

/// Starts a request, and returns its future with the result if it is available at once.
fn polled<'a>(pool: &'a Pool, name: &str) -> (Taking<'a>, Option<Result<PoolPermit, PoolFull>>) {
    let owner = owner(name);
    let mut taking: Taking<'a> = Box::pin(async move { pool.take(owner).await });
    let answer = look(&mut taking);
    (taking, answer)
}

fn look(taking: &mut Taking<'_>) -> Option<Result<PoolPermit, PoolFull>> {
    match taking.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}

fn taken(pool: &Pool, name: &str) -> PoolPermit {
    polled(pool, name).1.expect("a place at once").expect("a place")
}

/// Starts a request that must wait.
fn waits<'a>(pool: &'a Pool, name: &str) -> Taking<'a> {
    let (taking, answer) = polled(pool, name);
    assert!(answer.is_none(), "{name} should wait");
    taking
}

#[test]
fn an_owner_that_is_alone_has_all_places() {
    let pool = Pool::new(PLAIN);
    let turns = [taken(&pool, "a"), taken(&pool, "a")];
    let mut third = waits(&pool, "a");
    drop(turns);
    let turn = look(&mut third).expect("a place");
    assert_eq!((pool.held(), pool.waiting()), (1, 0));
    drop(turn);
}

#[test]
fn the_owner_that_holds_least_is_next_and_its_first_comer() {
    let pool = Pool::new(PLAIN);
    let (one, two) = (taken(&pool, "a"), taken(&pool, "a"));
    let mut more: Vec<Taking<'_>> = (0..3).map(|_| waits(&pool, "a")).collect();
    let mut first = waits(&pool, "b");
    let mut second = waits(&pool, "b");
    drop(one);
    let held = look(&mut first).expect("before all that came earlier");
    assert!(look(&mut second).is_none() && more.iter_mut().all(|one| look(one).is_none()));
    // Both owners held one permit; `a` held its permit for longer.
    drop(two);
    assert!(look(&mut second).is_none(), "a has none now, and b has one");
    let next = look(&mut more[0]).expect("the first of a's");
    assert!(look(&mut more[1]).is_none());
    drop((held, next));
}

#[test]
fn whoever_has_none_gets_an_extra_place_at_once() {
    let pool = Pool::new(PoolBounds { extra: 1, ..PLAIN });
    let (one, two) = (taken(&pool, "a"), taken(&pool, "a"));
    let mut third = waits(&pool, "a");
    let extra = taken(&pool, "b");
    assert_eq!(pool.held(), 3);
    let mut another = waits(&pool, "b");
    let mut late = waits(&pool, "c");
    // More than the regular permits are taken, so only an owner without a permit gets one.
    drop(one);
    let c = look(&mut late).expect("the extra place");
    assert!(look(&mut third).is_none() && look(&mut another).is_none());
    // The extra permit returns first; then owners that hold a permit can get another.
    drop(c);
    assert!(look(&mut third).is_none() && look(&mut another).is_none());
    drop(extra);
    assert!(look(&mut another).is_some());
    drop(two);
}

#[test]
fn whoever_goes_away_leaves_no_trace() {
    let pool = Pool::new(PLAIN);
    let turns = [taken(&pool, "a"), taken(&pool, "a")];
    let gone = waits(&pool, "a");
    let mut stays = waits(&pool, "a");
    assert_eq!(pool.waiting(), 2);
    drop(gone);
    assert_eq!(pool.waiting(), 1);
    // A request that was answered but not polled also returns its permit.
    let unseen = waits(&pool, "b");
    drop(turns);
    assert_eq!(pool.held(), 2);
    drop(unseen);
    assert!(look(&mut stays).is_some());
    assert_eq!((pool.held(), pool.waiting(), pool.free()), (0, 0, 2));
}

#[test]
fn those_that_wait_are_bounded_in_all_and_by_owner() {
    let pool = Pool::new(PoolBounds { places: 1, waiting: 4, shared: true, ..PLAIN });
    let turn = taken(&pool, "a");
    let mut all = vec![waits(&pool, "a"), waits(&pool, "a")];
    assert_eq!(polled(&pool, "a").1.map(|answer| answer.err()), Some(Some(PoolFull::Share(2))));
    all.push(waits(&pool, "b"));
    assert_eq!(polled(&pool, "b").1.map(|answer| answer.err()), Some(Some(PoolFull::Share(1))));
    all.push(waits(&pool, "c"));
    assert_eq!(polled(&pool, "d").1.map(|answer| answer.err()), Some(Some(PoolFull::All(4))));
    assert_eq!(pool.waiting(), 4);
    drop((all, turn));
    assert_eq!((pool.held(), pool.waiting()), (0, 0));
}

#[test]
fn an_owner_leaves_as_many_as_it_takes() {
    let pool = Pool::new(PoolBounds { places: 16, shared: true, ..PLAIN });
    let most = |name: &str| {
        let turns: Vec<PoolPermit> =
            std::iter::from_fn(|| pool.try_take(owner(name), 1).ok()).collect();
        (turns.len(), turns)
    };
    let (a, mut held) = most("a");
    assert_eq!(a, 8);
    assert_eq!(pool.try_take(owner("a"), 1).err(), Some(PoolFull::Share(8)));
    for (name, count) in [("b", 4), ("c", 2), ("d", 1), ("e", 1)] {
        let (one, turns) = most(name);
        assert_eq!(one, count, "{name}");
        held.extend(turns);
    }
    assert_eq!(pool.try_take(owner("f"), 1).err(), Some(PoolFull::All(16)));
    drop(held);
    assert_eq!(pool.free(), 16);
    // A single owner can take all permits.
    let pool = Pool::new(PoolBounds { places: 16, ..PLAIN });
    let all = pool.try_take(owner("a"), 16).expect("all");
    assert_eq!(pool.try_take(owner("a"), 1).err(), Some(PoolFull::All(16)));
    drop(all);
}

#[test]
fn the_least_is_had_in_any_case() {
    let pool = Pool::new(PoolBounds { places: 10, shared: true, least: 6, ..PLAIN });
    let one = pool.try_take(owner("a"), 6).expect("the least");
    assert_eq!(pool.try_take(owner("a"), 1).err(), Some(PoolFull::Share(6)));
    assert_eq!(pool.try_take(owner("b"), 6).err(), Some(PoolFull::All(10)));
    assert!(pool.try_take(owner("b"), 4).is_ok());
    drop(one);
}

#[tokio::test]
async fn whoever_wants_a_place_is_noticed() {
    let pool = Pool::new(PoolBounds { places: 1, ..PLAIN });
    let turn = pool.take(owner("a")).await.unwrap();
    let wanted = pool.wanted();
    tokio::pin!(wanted);
    assert!(wanted.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let waiting = waits(&pool, "b");
    wanted.await;
    drop((turn, waiting));
}
