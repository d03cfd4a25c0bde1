//! Where this process stands in a distributed program: three numbers that torchrun and its like put into the environment. Nothing
//! else of the environment is looked at.

use trace::segment::RankPlace;

/// As the environment says now. A RANK that is no number below WORLD_SIZE is somebody else's variable and is left alone.
pub fn of_environment() -> RankPlace {
    from(|name| std::env::var(name).ok())
}

pub fn from(variable: impl Fn(&str) -> Option<String>) -> RankPlace {
    let number = |name| variable(name).and_then(|text| text.trim().parse::<u32>().ok());
    match (number("RANK"), number("WORLD_SIZE")) {
        (Some(rank), Some(world_size)) if rank < world_size => RankPlace {
            rank: Some(rank),
            local_rank: number("LOCAL_RANK").filter(|local| *local < world_size),
            world_size: Some(world_size),
        },
        _ => RankPlace::default(),
    }
}
