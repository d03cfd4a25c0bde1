//! Reads another process's memory with `process_vm_readv`: one place, or many in one call.

use std::io;

/// The kernel takes so many places in one call (`UIO_MAXIOV`).
const MOST_AT_ONCE: usize = 1024;

/// Reads one place.
pub(crate) fn read_memory(pid: u32, address: usize, into: &mut [u8]) -> io::Result<()> {
    read_places(pid, &[address], into.len(), into)
}

/// Reads `length` bytes at each of the addresses, one after the other into `into`. All of it, or an error: a place that is
/// not mapped any more cannot be told from the others.
pub(crate) fn read_places(pid: u32, addresses: &[usize], length: usize, into: &mut [u8]) -> io::Result<()> {
    assert_eq!(into.len(), addresses.len() * length);
    if length == 0 {
        return Ok(());
    }
    let parts = into.chunks_mut(MOST_AT_ONCE * length).zip(addresses.chunks(MOST_AT_ONCE));
    for (into, addresses) in parts {
        let remote: Vec<_> = addresses
            .iter()
            .map(|address| libc::iovec { iov_base: *address as *mut libc::c_void, iov_len: length })
            .collect();
        let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        // SAFETY: the local buffer is ours and as long as we say; the kernel checks the remote places.
        let read = unsafe { libc::process_vm_readv(pid as i32, &local, 1, remote.as_ptr(), remote.len() as u64, 0) };
        match usize::try_from(read) {
            Ok(read) if read == into.len() => {}
            Ok(_) => return Err(io::Error::from_raw_os_error(libc::EFAULT)),
            Err(_) => return Err(io::Error::last_os_error()),
        }
    }
    Ok(())
}

/// The word at an offset of what was read.
pub(crate) fn word(bytes: &[u8], offset: usize) -> usize {
    let mut word = [0; size_of::<usize>()];
    word.copy_from_slice(&bytes[offset..offset + size_of::<usize>()]);
    usize::from_ne_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_places_come_in_order_and_one_bad_place_fails_them_all() {
        let numbers: Vec<usize> = (0..3000).map(|number| number * 7).collect();
        let mut addresses: Vec<usize> = numbers.iter().map(|number| std::ptr::from_ref(number) as usize).collect();
        let mut bytes = vec![0; addresses.len() * 8];
        read_places(std::process::id(), &addresses, 8, &mut bytes).unwrap();
        assert!((0..3000).all(|at| word(&bytes, at * 8) == at * 7));
        addresses[2999] = 8;
        assert!(read_places(std::process::id(), &addresses, 8, &mut bytes).is_err());
    }
}
