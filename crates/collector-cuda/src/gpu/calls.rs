//! Which CUDA calls are worth a record: those that give a device work, wait for it, or take its memory. PyTorch makes a
//! dozen others for every kernel; recording those would cost more than everything else together.
//!
//! The numbers are CUPTI's callback ids. They never change between versions (tests/cupti_headers checks this against the
//! headers of every supported one), and those that a version does not know are refused one by one.

/// CUPTI's callback domains.
pub const DRIVER: u32 = 1;
pub const RUNTIME: u32 = 2;
/// Callback ids run to about 850 in either domain.
pub const MOST_IDS: usize = 2048;

pub const RUNTIME_LAUNCH: &[u32] =
    &[13, 211, 213, 214, 269, 270, 272, 284, 285, 311, 312, 430, 431, 505, 506, 550, 551];
pub const RUNTIME_COPY: &[u32] = &[
    31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 144, 145, 160, 161, 162, 163, 215, 216,
    217, 218, 219, 220, 221, 222, 223, 224, 225, 226, 227, 228, 229, 230, 231, 232, 245, 246, 249, 250, 252, 253, 449,
    450, 482, 483, 484, 485, 487, 488, 491, 492, 509, 510, 511, 512, 554, 555, 556, 557,
];
pub const RUNTIME_MEMSET: &[u32] = &[49, 50, 51, 52, 142, 143, 233, 234, 235, 236, 243, 244];
pub const RUNTIME_SYNC: &[u32] = &[126, 131, 137, 147, 165, 239, 247, 534, 544];
pub const RUNTIME_ALLOC: &[u32] =
    &[20, 21, 22, 23, 24, 25, 26, 27, 140, 141, 152, 153, 179, 180, 192, 194, 206, 373, 374, 375, 376, 391, 392];
pub const RUNTIME_CAPTURE: &[u32] = &[310, 315, 316, 319, 320, 348, 349, 418, 436, 437, 443, 452, 453];
pub const RUNTIME_RESET: &[u32] = &[123, 164];
pub const RUNTIME_MODULE: &[u32] = &[470, 471];
pub const DRIVER_LAUNCH: &[u32] =
    &[115, 116, 117, 307, 442, 477, 478, 480, 514, 515, 527, 528, 652, 653, 819, 831, 832];
pub const DRIVER_COPY: &[u32] = &[
    43, 45, 47, 49, 51, 53, 54, 55, 56, 57, 58, 60, 62, 64, 66, 67, 68, 69, 248, 276, 277, 278, 279, 280, 281, 282,
    283, 284, 285, 286, 287, 288, 289, 290, 291, 292, 293, 305, 306, 318, 319, 320, 321, 397, 398, 399, 400, 401, 402,
    403, 404, 405, 406, 407, 408, 409, 410, 418, 419, 420, 421, 422, 423, 424, 425, 426, 427, 467, 468, 716, 717, 776,
    777, 778, 779, 784, 785, 791, 792, 796, 797, 798, 799, 837, 838, 839, 840,
];
pub const DRIVER_MEMSET: &[u32] = &[
    71, 73, 75, 77, 79, 81, 216, 218, 220, 222, 224, 226, 249, 250, 251, 252, 253, 254, 411, 412, 413, 414, 415, 416,
    428, 429, 430, 431, 432, 433,
];
pub const DRIVER_SYNC: &[u32] = &[17, 121, 126, 295, 436, 440, 750, 756, 800];
pub const DRIVER_ALLOC: &[u32] = &[
    29, 31, 33, 37, 38, 39, 243, 244, 245, 271, 294, 301, 302, 329, 330, 371, 379, 547, 548, 549, 550, 551, 552, 554,
    555, 565, 567, 598, 599, 600, 601, 611, 612,
];
pub const DRIVER_CAPTURE: &[u32] = &[495, 496, 497, 498, 513, 539, 540, 578, 580, 581, 643, 656, 657, 720, 721];
pub const DRIVER_RESET: &[u32] = &[11, 322, 387, 389, 544, 545, 744];
pub const DRIVER_MODULE: &[u32] = &[18, 19, 20, 21, 678, 679];

/// What does something with memory: on while anything of a GPU is recorded, also in the pauses of the overhead budget. What is
/// alive is the sum of all that happened before, so that not one may be missing; and there are few.
pub const MEMORY: &[(u32, &[u32])] = &[(RUNTIME, RUNTIME_ALLOC), (DRIVER, DRIVER_ALLOC)];

/// What is recorded with the default detail beside these, by domain.
pub const CHOSEN: &[(u32, &[u32])] = &[
    (RUNTIME, RUNTIME_LAUNCH),
    (RUNTIME, RUNTIME_COPY),
    (RUNTIME, RUNTIME_MEMSET),
    (RUNTIME, RUNTIME_SYNC),
    (RUNTIME, RUNTIME_CAPTURE),
    (RUNTIME, RUNTIME_RESET),
    (RUNTIME, RUNTIME_MODULE),
    (DRIVER, DRIVER_LAUNCH),
    (DRIVER, DRIVER_COPY),
    (DRIVER, DRIVER_MEMSET),
    (DRIVER, DRIVER_SYNC),
    (DRIVER, DRIVER_CAPTURE),
    (DRIVER, DRIVER_RESET),
    (DRIVER, DRIVER_MODULE),
];

/// What gives a device work.
pub const WORK: &[(u32, &[u32])] = &[
    (RUNTIME, RUNTIME_LAUNCH),
    (RUNTIME, RUNTIME_COPY),
    (RUNTIME, RUNTIME_MEMSET),
    (DRIVER, DRIVER_LAUNCH),
    (DRIVER, DRIVER_COPY),
    (DRIVER, DRIVER_MEMSET),
];

/// What puts work into a graph instead.
pub const CAPTURE: &[(u32, &[u32])] = &[(RUNTIME, RUNTIME_CAPTURE), (DRIVER, DRIVER_CAPTURE)];

/// What launches kernels, beside graph launches, which are progress calls, and host functions, which give no work.
pub const LAUNCH: &[(u32, &[u32])] = &[(RUNTIME, RUNTIME_LAUNCH), (DRIVER, DRIVER_LAUNCH)];

/// What ends a capture. Graphs that are built node by node, which are only instantiated, are none.
pub const CAPTURE_END: &[(u32, &[u32])] = &[(RUNTIME, RUNTIME_END_CAPTURE), (DRIVER, DRIVER_END_CAPTURE)];

/// The calls by which progress is told while nothing else is recorded: waits and graph launches, few in any program.
pub const PROGRESS_CALLS: &[(u32, &[u32])] =
    &[(RUNTIME, RUNTIME_SYNC), (DRIVER, DRIVER_SYNC), (RUNTIME, RUNTIME_GRAPH_LAUNCH), (DRIVER, DRIVER_GRAPH_LAUNCH)];

/// What makes the host do something, or pages move: no work of CUPTI's follows.
pub const NO_WORK: &[(u32, &[u32])] =
    &[(RUNTIME, RUNTIME_HOST_FUNC), (DRIVER, DRIVER_HOST_FUNC), (RUNTIME, RUNTIME_PREFETCH), (DRIVER, DRIVER_PREFETCH)];

// Some of a class, by a part of their name.
const RUNTIME_HOST_FUNC: &[u32] = &[284, 285, 550, 551];
const DRIVER_HOST_FUNC: &[u32] = &[527, 528, 831, 832];
const RUNTIME_PREFETCH: &[u32] = &[252, 253, 449, 450, 487, 488, 491, 492];
const DRIVER_PREFETCH: &[u32] = &[467, 468, 716, 717, 784, 785, 791, 792];
const RUNTIME_GRAPH_LAUNCH: &[u32] = &[311, 312];
const DRIVER_GRAPH_LAUNCH: &[u32] = &[514, 515, 819];
const RUNTIME_END_CAPTURE: &[u32] = &[319, 320];
const DRIVER_END_CAPTURE: &[u32] = &[497, 498];
pub const RUNTIME_DEVICE_SYNCHRONIZE: &[u32] = &[165];
