package link

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// readAll returns the head and the data of an answer, and the error that ended it; nil for a
// whole one.
func readAll(r io.Reader) (h Head, data []byte, err error) {
	answer := NewReader(r)
	if h, err = answer.Head(); err != nil {
		return h, nil, err
	}
	for {
		part, err := answer.Next()
		if err == io.EOF {
			return h, data, nil
		}
		if err != nil {
			return h, data, err
		}
		data = append(data, part...)
	}
}

func TestAnswersPassWhole(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := Answer{&out}
	want, long := Head{Status: 200, Type: "text/event-stream", After: "3", ID: "req_1"}, bytes.Repeat([]byte("x\n"), maxFrame)
	if err := errors.Join(a.Head(want), sent(a.Write([]byte("first"))), sent(a.Write(nil)), sent(a.Write(long)), a.End(End{})); err != nil {
		t.Fatal(err)
	}
	h, data, err := readAll(iotest.HalfReader(&out))
	if err != nil || h != want || string(data[:5]) != "first" || !bytes.Equal(data[5:], long) {
		t.Errorf("%+v, %d bytes, %v", h, len(data), err)
	}
}

func sent(_ int, err error) error { return err }

func TestTheEndSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := Answer{&out}
	if err := errors.Join(a.Head(Head{Status: 200}), sent(a.Write([]byte("a"))), a.End(End{Error: "too slow"})); err != nil {
		t.Fatal(err)
	}
	if _, data, err := readAll(&out); err == nil || err.Error() != "too slow" || string(data) != "a" {
		t.Errorf("%q, %v", data, err)
	}
}

// frame is one of a kind that says it has so many bytes.
func frame(kind byte, size int, text string) string {
	return string(binary.BigEndian.AppendUint32([]byte{kind}, uint32(size))) + text
}

func TestAnswersThatAreNotWhole(t *testing.T) {
	t.Parallel()
	head := frame('H', 14, `{"status":200}`)
	end := frame('E', 2, `{}`)
	for name, row := range map[string]struct{ text, want string }{
		"nothing":               {"", "broke off"},
		"half a frame's head":   {"H\x00", "broke off"},
		"half a frame":          {head[:10], "broke off"},
		"no end":                {head, "broke off"},
		"half an end":           {head + end[:6], "broke off"},
		"data first":            {frame('D', 1, "a") + head + end, "begins with"},
		"an end first":          {end, "broke off"},
		"an error first":        {frame('E', 19, `{"error":"too slow"}`[:19]), "unexpected end"},
		"a whole error first":   {frame('E', 20, `{"error":"too slow"}`), "too slow"},
		"another kind":          {head + frame('X', 0, "") + end, "has a part"},
		"two heads":             {head + head + end, "has a part"},
		"a frame of 4 GiB":      {head + frame('D', 1<<32-1, ""), "a part of"},
		"a frame above the top": {head + frame('D', maxFrame+1, ""), "a part of"},
		"a head of no JSON":     {frame('H', 1, "x"), "invalid character"},
		"an end of no JSON":     {head + frame('E', 1, "x"), "invalid character"},
	} {
		if _, _, err := readAll(strings.NewReader(row.text)); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := readAll(strings.NewReader(head + frame('D', 1, "a") + end)); err != nil {
		t.Errorf("control: %v", err)
	}
}

func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 1 << 20} {
		var out bytes.Buffer
		body := bytes.Repeat([]byte("b"), size)
		if err := SendBody(&out, body); err != nil {
			t.Fatal(err)
		}
		if got, err := ReceiveBody(iotest.OneByteReader(&out), free); err != nil || !bytes.Equal(got, body) {
			t.Errorf("%d bytes become %d, %v", size, len(got), err)
		}
	}
	if err := SendBody(io.Discard, make([]byte, MaxBody+1)); err == nil {
		t.Error("a longer body was sent")
	}
	for _, text := range []string{"", "\x00\x00", "\x00\x00\x00\x02a", string(binary.BigEndian.AppendUint32(nil, MaxBody+1)), "\xff\xff\xff\xff"} {
		if body, err := ReceiveBody(strings.NewReader(text), free); err == nil {
			t.Errorf("%q is %d bytes", text, len(body))
		}
	}
}

func free(int64) bool { return true }

// A body for which there is no room is not read.
func TestRoomForABody(t *testing.T) {
	t.Parallel()
	for size, room := range map[int64]bool{3: true, 4: false} {
		text := strings.NewReader(string(binary.BigEndian.AppendUint32(nil, uint32(size))) + "body")
		body, err := ReceiveBody(text, func(bytes int64) bool { return bytes <= 3 })
		if (err == nil) != room || (len(body) == 3) != room || text.Len() != 1 && room || text.Len() != 4 && !room {
			t.Errorf("%d bytes: %q, %v", size, body, err)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"service_tier=flex", "prompt-caching-2024-07-31", strings.Repeat("a", maxWord)} {
		if !IsWord(text) {
			t.Errorf("%q is none", text)
		}
	}
	for _, text := range []string{"", "a b", "a,b", "a\r\nX-Api-Key: 1", "a\x00", "é", `"`, strings.Repeat("a", maxWord+1)} {
		if IsWord(text) {
			t.Errorf("%q is one", text)
		}
	}
}

// Whatever is read: no more data than came, an end for each, and the same in any pieces.
func FuzzReader(f *testing.F) {
	whole := frame('H', 14, `{"status":200}`) + frame('D', 3, "abc") + frame('E', 2, `{}`)
	f.Add(whole)
	f.Add(whole[:20])
	f.Add(frame('D', 1<<31, "abc"))
	f.Add(frame('H', 2, "{}") + frame('E', 13, `{"error":"x"}`))
	f.Fuzz(func(t *testing.T, text string) {
		h, data, err := readAll(strings.NewReader(text))
		again, same, errAgain := readAll(iotest.OneByteReader(strings.NewReader(text)))
		if len(data) > len(text) || h != again || !slices.Equal(data, same) || (err == nil) != (errAgain == nil) {
			t.Fatalf("%+v, %q, %v; %+v, %q, %v", h, data, err, again, same, errAgain)
		}
		if body, err := ReceiveBody(strings.NewReader(text), free); err == nil && len(body) > len(text) {
			t.Fatalf("%d bytes of %d", len(body), len(text))
		}
	})
}
