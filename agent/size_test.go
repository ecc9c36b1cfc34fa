package agent

import "testing"

func TestParseSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"0": 0, "1": 1, "4096": 4096, "512K": 512 << 10, "512k": 512 << 10, "1.5G": 3 << 29, "1,5G": -1, "256M": 256 << 20,
		"256MB": 256 << 20, "256MiB": 256 << 20, "256Mi": 256 << 20, "64 M": 64 << 20, "7b": 7, "7B": 7, "4096T": SizeCeiling, "4P": SizeCeiling, "4097T": -1,
		".5K": 512, "1.K": 1024, "": -1, "M": -1, ".": -1, "1.2.3M": -1, "-1": -1, "+1": -1, "1e3": -1, "0x10": -1, "i": -1, "1i": -1, "1iB": -1, "1MM": -1,
		"1Mib ": -1, " 1M": -1, "1  M": -1, "1_000": -1, "inf": -1, "nan": -1, "１M": -1, "99999999999999999999999999": -1} {
		n, err := ParseSize(text)
		if refused := err != nil; refused != (want < 0) || !refused && n != want {
			t.Errorf("%q: %d, %v, want %d", text, n, err, want)
		}
		if err != nil && (KindOf(err) != KindInvalid || FailureOf(err).Hint == "") {
			t.Errorf("%q: %v has no hint", text, err)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, text := range []string{"1.5G", "256MiB", "4096T", "0", "1e9", "-1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := ParseSize(text); err == nil && (n < 0 || n > SizeCeiling) {
			t.Errorf("%q is %d bytes", text, n)
		}
	})
}
