use super::super::tests::{artifact, key};
use super::*;

fn stored(name: &str, image_bytes: usize) -> (Key, CompiledModule) {
    let key = key(name);
    let mut artifact = artifact(image_bytes);
    artifact.key = key.to_string();
    (key, artifact)
}

fn age(path: &Path, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    let file = File::options().append(true).open(path).unwrap();
    file.set_times(FileTimes::new().set_modified(time)).unwrap();
}

#[test]
fn an_artifact_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (key, artifact) = stored("a", 5000);
    let store = Store::open(dir.path().into(), 1 << 20).unwrap();
    store.put(&key, &artifact).unwrap();
    let again = Store::open(dir.path().into(), 1 << 20).unwrap();
    let found: CompiledModule = again.get(&key).unwrap();
    assert_eq!((found.image, found.kernels), (artifact.image, artifact.kernels));
    assert!(again.bytes.load(Ordering::Relaxed) > 5000);
}

#[test]
fn a_damaged_entry_is_a_miss_and_goes() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().into(), 1 << 20).unwrap();
    let (key, artifact) = stored("a", 500);
    let whole = encode(&artifact).unwrap();
    for at in [0, 8, 20, HEADER_BYTES + 3, whole.len() - 1] {
        store.put(&key, &artifact).unwrap();
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        fs::write(store.path(&key), &bytes).unwrap();
        assert!(store.get::<CompiledModule>(&key).is_none(), "byte {at}");
        assert!(!store.path(&key).exists(), "byte {at}");
    }
    for length in [0, 8, HEADER_BYTES, whole.len() - 1] {
        store.put(&key, &artifact).unwrap();
        fs::write(store.path(&key), &whole[..length]).unwrap();
        assert!(store.get::<CompiledModule>(&key).is_none(), "{length} bytes");
    }
}

#[test]
fn an_entry_under_another_name_is_a_miss() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().into(), 1 << 20).unwrap();
    let (a, artifact) = stored("a", 500);
    let (b, _) = stored("b", 500);
    store.put(&a, &artifact).unwrap();
    fs::create_dir_all(store.path(&b).parent().unwrap()).unwrap();
    fs::rename(store.path(&a), store.path(&b)).unwrap();
    assert!(store.get::<CompiledModule>(&b).is_none());
}

#[test]
fn the_bound_holds_and_the_least_recently_used_go() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().into(), 60_000).unwrap();
    let names = ["a", "b", "c", "d", "e"];
    for (index, name) in names.iter().enumerate() {
        let (key, artifact) = stored(name, 10_000);
        store.put(&key, &artifact).unwrap();
        age(&store.path(&key), 1000 - index as u64);
    }
    assert!(store.get::<CompiledModule>(&key("a")).is_some(), "reading makes it recent");
    let (key_f, artifact) = stored("f", 10_000);
    store.put(&key_f, &artifact).unwrap();
    let left: Vec<&str> = ["a", "b", "c", "d", "e", "f"]
        .into_iter()
        .filter(|n| store.path(&key(n)).exists())
        .collect();
    assert_eq!(left, ["a", "c", "d", "e", "f"].map(|n| n)[..]);
    let total: u64 = list(dir.path()).unwrap().iter().map(|f| f.bytes).sum();
    assert!(total <= 60_000, "{total}");
}

#[test]
fn an_artifact_beyond_the_bound_is_not_stored() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().into(), 1000).unwrap();
    let (key, artifact) = stored("a", 5000);
    store.put(&key, &artifact).unwrap();
    assert!(!store.path(&key).exists());
}

#[test]
fn writers_and_readers_of_one_entry_never_meet_half_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let (key, artifact) = stored("a", 100_000);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let store = Store::open(dir.path().into(), 1 << 20).unwrap();
                for _ in 0..50 {
                    store.put(&key, &artifact).unwrap();
                    assert!(store.get::<CompiledModule>(&key).is_some());
                }
            });
        }
    });
}

#[test]
fn temporary_files_of_the_dead_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let shard = dir.path().join("ab");
    fs::create_dir_all(&shard).unwrap();
    let (old, new) = (shard.join(".new-old"), shard.join(".new-new"));
    fs::write(&old, "x").unwrap();
    fs::write(&new, "x").unwrap();
    age(&old, 7200);
    Store::open(dir.path().into(), 1000).unwrap();
    assert!(!old.exists() && new.exists());
}
