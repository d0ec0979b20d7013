//! Checkpoints written here by hand, honest and hostile.

use super::*;

/// A pickle of instructions.
#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn raw(mut self, bytes: &[u8]) -> Writer {
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(self, text: &str) -> Writer {
        self.raw(b"X").raw(&(text.len() as u32).to_le_bytes()).raw(text.as_bytes())
    }

    fn int(self, value: i64) -> Writer {
        self.raw(&[0x8a, 8]).raw(&value.to_le_bytes())
    }

    fn ints(self, values: &[i64]) -> Writer {
        values.iter().fold(self.raw(b"("), |writer, &value| writer.int(value)).raw(b"t")
    }

    /// A storage of floats, as the zip format refers to it.
    fn storage(self, key: &str, elements: i64) -> Writer {
        self.raw(b"(")
            .text("storage")
            .raw(b"ctorch\nFloatStorage\n")
            .text(key)
            .text("cpu")
            .int(elements)
            .raw(b"tQ")
    }

    fn tensor(self, key: &str, elements: i64, offset: i64, (shape, strides): (&[i64], &[i64])) -> Writer {
        let writer = self.raw(b"ctorch._utils\n_rebuild_tensor_v2\n(").storage(key, elements).int(offset);
        writer.ints(shape).ints(strides).raw(b"\x89ccollections\nOrderedDict\n)RtR")
    }

    /// {"state_dict": OrderedDict(w=this tensor)}
    fn wrapped(elements: i64, shape: &[i64], strides: &[i64]) -> Vec<u8> {
        let writer = Writer::default().raw(b"\x80\x02}").text("state_dict");
        let writer = writer.raw(b"ccollections\nOrderedDict\n)R").text("w");
        writer.tensor("0", elements, 0, (shape, strides)).raw(b"ss.").0
    }
}

/// A zip archive of stored entries.
fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in entries {
        let local = bytes.len() as u32;
        let mut facts = vec![0; 8];
        facts.extend([0; 4]);
        facts.extend((content.len() as u32).to_le_bytes());
        facts.extend((content.len() as u32).to_le_bytes());
        facts.extend((name.len() as u16).to_le_bytes());
        facts.extend([0, 0]);
        bytes.extend([b"PK\x03\x04\0\0", facts.as_slice(), name.as_bytes(), content].concat());
        directory.extend([b"PK\x01\x02\0\0\0\0", facts.as_slice(), &[0; 10]].concat());
        directory.extend(local.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let start = bytes.len() as u32;
    bytes.extend(&directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend((entries.len() as u16).to_le_bytes());
    bytes.extend((entries.len() as u16).to_le_bytes());
    bytes.extend((directory.len() as u32).to_le_bytes());
    bytes.extend(start.to_le_bytes());
    bytes.extend([0, 0]);
    bytes
}

fn floats(count: usize) -> Vec<u8> {
    (0..count).flat_map(|i| (i as f32).to_le_bytes()).collect()
}

fn told(bytes: &[u8]) -> String {
    from_bytes(bytes).expect_err("refused").to_string()
}

/// The error for an archive with this pickle and one storage.
fn told_of(pickle: &[u8], storage: &[u8]) -> String {
    told(&archive(&[("m/data.pkl", pickle), ("m/data/0", storage)]))
}

#[test]
fn a_strided_tensor_is_read_from_both_formats() {
    let pickle = Writer::wrapped(6, &[3, 2], &[1, 3]);
    let zip = archive(&[("m/data.pkl", &pickle), ("m/data/0", &floats(6))]);
    let magic = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
    let writer = Writer::default().raw(b"\x80\x02}").text("little_endian").raw(b"\x88s.").0;
    let keys = Writer::default().raw(b"\x80\x02](").text("0").raw(b"e.").0;
    let legacy =
        [magic, &b"\x80\x02M\xe9\x03."[..], &writer, &pickle, &keys, &6u64.to_le_bytes(), &floats(6)]
            .concat();
    for bytes in [zip, legacy] {
        let tensors = from_bytes(&bytes).expect("read");
        assert_eq!(tensors[0].0, "w");
        assert_eq!(
            (tensors[0].1.shape(), tensors[0].1.values()),
            (&[3, 2][..], Some(&[0f32, 3.0, 1.0, 4.0, 2.0, 5.0][..]))
        );
        for cut in 0..bytes.len() {
            assert!(from_bytes(&bytes[..cut]).is_err(), "cut to {cut}");
        }
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0xff;
            let _ = from_bytes(&bytes);
        }
    }
}

#[test]
fn whatever_could_run_is_refused_by_name() {
    let call = b"\x80\x02cposix\nsystem\nX\x02\0\0\0ls\x85R.";
    assert!(
        told_of(call, &[]).contains("asks for posix.system, which is not data"),
        "{}",
        told_of(call, &[])
    );
    let stacked = Writer::default().raw(b"\x80\x04").text("builtins").text("eval").raw(b"\x93.").0;
    assert!(told_of(&stacked, &[]).contains("builtins.eval"));
    let instance = b"\x80\x02(ios\nsystem\n.";
    assert!(told_of(instance, &[]).contains("instruction 'i'"));
    let module = b"\x80\x02ctorch.nn.modules.linear\nLinear\n)\x81.";
    assert!(told_of(module, &[]).contains("torch.nn.modules.linear.Linear"));
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let short = told_of(&Writer::wrapped(6, &[3, 2], &[2, 1]), &floats(5));
    assert!(short.contains("storage \"0\" should hold 6 Float elements but has 20 bytes"), "{short}");
    let terabyte = told_of(&Writer::wrapped(6, &[1 << 38], &[1]), &floats(6));
    assert!(
        terabyte.contains("tensor \"w\" of shape [274877906944] asks for more than the file can hold"),
        "{terabyte}"
    );
    let claimed = told_of(&Writer::wrapped(1 << 38, &[1 << 38], &[1]), &floats(6));
    assert!(claimed.contains("should hold 274877906944"), "{claimed}");
    let spread = told_of(&Writer::wrapped(6, &[5, 5], &[0, 0]), &floats(6));
    assert!(spread.contains("in a storage of 6 elements"), "{spread}");
    let beyond = told_of(&Writer::wrapped(6, &[2, 2], &[4, 2]), &floats(6));
    assert!(beyond.contains("in a storage of 6 elements"), "{beyond}");
    let overflow = told_of(&Writer::wrapped(6, &[i64::MAX, i64::MAX], &[i64::MAX, 1]), &floats(6));
    assert!(overflow.contains("asks for more"), "{overflow}");
    let negative = told_of(&Writer::wrapped(6, &[-1], &[1]), &floats(6));
    assert!(negative.contains("without storage, offset, shape or strides"), "{negative}");
}

#[test]
fn nests_and_floods_end_in_a_sentence() {
    // Ten lists of ten references each, thirty levels deep: a billion laughs and more.
    let mut laughs = Writer::default().raw(b"\x80\x02]q\0");
    for level in 0..30u8 {
        laughs = laughs.raw(b"](");
        for _ in 0..10 {
            laughs = laughs.raw(&[b'h', level]);
        }
        laughs = laughs.raw(&[b'e', b'q', level + 1]);
    }
    assert!(told_of(&laughs.raw(b".").0, &[]).contains("not a dict of tensors"));
    let deep = [&b"\x80\x02"[..], &b"]".repeat(500_000), &b"a".repeat(499_999), b"."].concat();
    assert!(told_of(&deep, &[]).contains("not a dict of tensors"));
    assert!(told_of(&b"(".repeat(7 << 20), &[]).contains("nests deeper"));
    assert!(told_of(&b"N".repeat(7 << 20), &[]).contains("more than 1048576 values"));
    assert!(told_of(&b"}2".repeat(4 << 20), &[]).contains("values"));
    assert!(told_of(&[b"N".as_slice(), &b"2".repeat(9 << 20)].concat(), &[]).contains("longer than 8 MB"));
    assert!(told_of(b"\x80\x02}q\0X\x0a\0\0\0state_dicth\0s.", &[]).contains("no dict of tensors"));
}
