//! Three numbers of the environment say which rank a process is; what is not such a number is not taken.

use trace::segment::RankPlace;
use workload::place;

fn of(rank: &str, local: &str, world: &str) -> RankPlace {
    place::from(|name| {
        let value = match name {
            "RANK" => rank,
            "LOCAL_RANK" => local,
            "WORLD_SIZE" => world,
            other => panic!("{other} is none of ours"),
        };
        Some(value.to_owned()).filter(|value| value != "-")
    })
}

#[test]
fn torchruns_three_numbers_are_taken() {
    assert_eq!(of("9", "1", "16"), RankPlace { rank: Some(9), local_rank: Some(1), world_size: Some(16) });
    assert_eq!(of("0", "-", "1"), RankPlace { rank: Some(0), local_rank: None, world_size: Some(1) });
}

#[test]
fn what_is_no_rank_is_left_alone() {
    for (rank, world) in [("-", "-"), ("3", "-"), ("-", "4"), ("4", "4"), ("hf_secret", "4"), ("-1", "4"), ("1", "two")]
    {
        assert_eq!(of(rank, "0", world), RankPlace::default(), "{rank} of {world}");
    }
    assert_eq!(of("0", "hf_secret", "2").local_rank, None);
    assert_eq!(of("0", "7", "2").local_rank, None);
}
