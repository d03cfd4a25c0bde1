//! CUPTI and the driver as tables of functions, each looked up by name at run time. Nothing is linked: a symbol that is missing
//! is a field that is None, and who needs it says so.

use super::dynamic::Library;
use std::ffi::{CStr, c_char, c_int, c_void};
use trace::device_facts::DeviceFacts;

/// CUPTI's result codes that mean something to us.
pub const SUCCESS: u32 = 0;
pub const MULTIPLE_SUBSCRIBERS: u32 = 39;

pub type Subscriber = *mut c_void;
pub type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);
pub type BufferRequested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
pub type BufferCompleted = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
pub type Timestamp = unsafe extern "C" fn() -> u64;

macro_rules! table {
    ($(#[$doc:meta])* $table:ident { $($field:ident = $name:literal ($($argument:ty),*);)* }) => {
        $(#[$doc])*
        pub struct $table {
            $(pub $field: Option<unsafe extern "C" fn($($argument),*) -> u32>,)*
        }

        impl $table {
            pub fn load(library: &Library) -> $table {
                $table {
                    // SAFETY: a function of this name has this signature in every version since CUDA 11.
                    $($field: library.symbol($name).map(|symbol| unsafe { std::mem::transmute(symbol) }),)*
                }
            }
        }
    };
}

table! {
    /// libcupti.
    Cupti {
        version = c"cuptiGetVersion" (*mut u32);
        result_string = c"cuptiGetResultString" (u32, *mut *const c_char);
        subscribe = c"cuptiSubscribe" (*mut Subscriber, Callback, *mut c_void);
        unsubscribe = c"cuptiUnsubscribe" (Subscriber);
        enable_callback = c"cuptiEnableCallback" (u32, Subscriber, u32, u32);
        enable_domain = c"cuptiEnableDomain" (u32, Subscriber, u32);
        activity_enable = c"cuptiActivityEnable" (u32);
        activity_disable = c"cuptiActivityDisable" (u32);
        register_callbacks = c"cuptiActivityRegisterCallbacks" (BufferRequested, BufferCompleted);
        register_timestamp = c"cuptiActivityRegisterTimestampCallback" (Timestamp);
        set_attribute = c"cuptiActivitySetAttribute" (u32, *mut usize, *mut c_void);
        next_record = c"cuptiActivityGetNextRecord" (*mut u8, usize, *mut *mut u8);
        dropped_records = c"cuptiActivityGetNumDroppedRecords" (*mut c_void, u32, *mut usize);
        flush_all = c"cuptiActivityFlushAll" (u32);
        timestamp = c"cuptiGetTimestamp" (*mut u64);
        configure_unified_memory = c"cuptiActivityConfigureUnifiedMemoryCounter" (*mut UnifiedMemory, u32);
        device_id = c"cuptiGetDeviceId" (*const c_void, *mut u32);
        stream_id = c"cuptiGetStreamIdEx" (*const c_void, *const c_void, u8, *mut u32);
    }
}

table! {
    /// libcuda.
    Driver {
        version = c"cuDriverGetVersion" (*mut c_int);
        current_context = c"cuCtxGetCurrent" (*mut *mut c_void);
        device = c"cuDeviceGet" (*mut c_int, c_int);
        device_name = c"cuDeviceGetName" (*mut c_char, c_int, c_int);
        device_uuid = c"cuDeviceGetUuid_v2" (*mut [u8; 16], c_int);
        device_uuid_before = c"cuDeviceGetUuid" (*mut [u8; 16], c_int);
        device_memory = c"cuDeviceTotalMem_v2" (*mut usize, c_int);
        device_attribute = c"cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
    }
}

/// `CU_DEVICE_ATTRIBUTE_…`
const MULTIPROCESSORS: c_int = 16;
const MEMORY_CLOCK_KHZ: c_int = 36;
const MEMORY_BUS_BITS: c_int = 37;
const MAJOR: c_int = 75;
const MINOR: c_int = 76;

impl Driver {
    /// Whether the program has started CUDA in this process. Asked of a function that starts nothing: before `cuInit`, and in
    /// the fork of a process that called it, the driver answers each with an error.
    pub fn runs(&self) -> bool {
        let mut context = std::ptr::null_mut();
        // SAFETY: it only stores a pointer.
        self.current_context.is_some_and(|ask| unsafe { ask(&mut context) } == SUCCESS)
    }

    /// None: the driver does not say. It makes no context for this.
    pub fn device(&self, ordinal: u32) -> Option<DeviceFacts> {
        let mut device: c_int = 0;
        // SAFETY: each of these functions only stores what it was asked for, where it has room for it.
        unsafe {
            (self.device?(&mut device, c_int::try_from(ordinal).ok()?) == SUCCESS).then_some(())?;
            let mut name = [0 as c_char; 128];
            // One byte less than there is: what it stores always ends.
            (self.device_name?(name.as_mut_ptr(), name.len() as c_int - 1, device) == SUCCESS).then_some(())?;
            let name = CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned();
            let mut uuid = [0; 16];
            self.device_uuid.or(self.device_uuid_before).map(|ask| ask(&mut uuid, device));
            let mut memory = 0usize;
            self.device_memory.map(|ask| ask(&mut memory, device));
            let attribute = |which: c_int| {
                let mut value: c_int = 0;
                let known = self.device_attribute.is_some_and(|ask| ask(&mut value, which, device) == SUCCESS);
                if known { u32::try_from(value).unwrap_or(0) } else { 0 }
            };
            // Memory does two transfers a cycle.
            let bandwidth =
                u64::from(attribute(MEMORY_CLOCK_KHZ)) * 1000 * 2 * u64::from(attribute(MEMORY_BUS_BITS) / 8);
            Some(DeviceFacts {
                ordinal,
                instance: name.contains(" MIG "),
                name,
                uuid,
                multiprocessors: attribute(MULTIPROCESSORS),
                compute_capability: (attribute(MAJOR), attribute(MINOR)),
                memory_bytes: memory as u64,
                bandwidth,
            })
        }
    }
}

impl Cupti {
    /// What CUPTI calls an error. Some versions have no words for it.
    pub fn words(&self, code: u32) -> String {
        let known = match code {
            MULTIPLE_SUBSCRIBERS => Some("another profiler (torch.profiler, Nsight, cuda-gdb) already holds CUPTI"),
            35 | 40 => Some(
                "the driver lets only administrators profile: set NVreg_RestrictProfilingToAdminUsers=0, or give \
                 the container CAP_SYS_ADMIN",
            ),
            41 => Some("confidential computing forbids it"),
            33 | 43 => Some("this virtual or MIG device does not support it"),
            _ => None,
        };
        if let Some(known) = known {
            return known.to_owned();
        }
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: it only stores a pointer to a constant.
        let said = self.result_string.is_some_and(|words| unsafe { words(code, &mut text) } == SUCCESS);
        if !said || text.is_null() {
            return format!("error {code}");
        }
        // SAFETY: CUPTI's constant.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        format!("error {code}, {text}")
    }

    /// The version that CUPTI gives itself: 18 (11.8, 12.1) to 28 (12.9), then 130000 and up.
    pub fn number(&self) -> u32 {
        let mut number = 0;
        // SAFETY: it only stores a number.
        self.version.map_or(0, |version| if unsafe { version(&mut number) } == SUCCESS { number } else { 0 })
    }
}

/// CUPTI's `CUpti_ActivityUnifiedMemoryCounterConfig`.
#[repr(C)]
pub struct UnifiedMemory {
    /// 1: of one device, for this process.
    pub scope: u32,
    pub kind: u32,
    pub device: u32,
    pub enable: u32,
}

/// CUPTI's `CUpti_CallbackData`, the same in every version.
#[repr(C)]
pub struct CallbackData {
    /// 0 at the begin of the call, 1 at its end.
    pub site: u32,
    pub function: *const c_char,
    pub parameters: *const c_void,
    pub result: *const c_void,
    pub symbol: *const c_char,
    pub context: *const c_void,
    pub context_uid: u32,
    /// Ours to keep a number in from begin to end.
    pub keep: *mut u64,
    pub correlation: u32,
}

impl CallbackData {
    /// What CUDA said at the end of a call; 0: it is fine.
    #[inline]
    pub fn code(&self) -> u32 {
        // SAFETY: null, or a result code, at the end of a call.
        unsafe { self.result.cast::<u32>().as_ref() }.copied().unwrap_or(0)
    }
}

const _: () = assert!(size_of::<CallbackData>() == 72 && std::mem::offset_of!(CallbackData, correlation) == 64);
