import io
import os
import tarfile
import tempfile
import unittest
from pathlib import Path

from clove import trees


def element(name, kind=tarfile.REGTYPE, link="", data=b"x", mode=0o644):
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.mode = kind, link, mode
    member.size = len(data) if kind == tarfile.REGTYPE else 0
    return member, data


class Trees(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)
        (self.top / "outside").mkdir()

    def archive(self, *elements):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w") as archive:
            for member, data in elements:
                archive.addfile(member, io.BytesIO(data))
        file.seek(0)
        return file

    def unpack(self, *elements):
        return trees._unpack(self.archive(*elements), "o", self.top / "target")

    def test_what_leads_out_is_left_out(self):
        attack = [
            element("o", tarfile.DIRTYPE, mode=0o755),
            element("o/../../outside/a"),
            element("o/link", tarfile.SYMTYPE, str(self.top / "outside")),
            element("o/up", tarfile.SYMTYPE, "../outside"),
            element("o/hard", tarfile.LNKTYPE, "/etc/passwd"),
            element("o/null", tarfile.CHRTYPE),
            element("o/link/b"),
        ]
        left = self.unpack(*attack)
        self.assertEqual(left, ["o/../../outside/a", "o/link", "o/up", "o/hard", "o/null"])
        self.assertEqual(os.listdir(self.top / "outside"), [])
        self.assertEqual((self.top / "target/link/b").read_bytes(), b"x")
        # The control: an unpacking without these rules writes outside.
        with tarfile.open(fileobj=self.archive(*attack[:3], attack[-1])) as archive:
            archive.extractall(self.top / "control/deep", **({"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}))
        self.assertEqual(os.listdir(self.top / "outside"), ["b"])

    def test_a_link_of_the_archive_is_replaced_and_not_followed(self):
        (self.top / "target").mkdir()
        os.symlink(self.top / "outside", self.top / "target/d")
        os.symlink(self.top / "outside/f", self.top / "target/f")
        self.assertEqual(self.unpack(element("o/d/x"), element("o/f"), element("o/in", tarfile.SYMTYPE, "d/x")), [])
        self.assertEqual(os.listdir(self.top / "outside"), [])
        self.assertEqual((self.top / "target/in").read_bytes(), b"x")

    def test_files_replace_what_is_there(self):
        self.unpack(element("o/a/b"), element("o/c", data=b"1"))
        self.assertEqual(self.unpack(element("o/a", data=b"2"), element("o/c/d", mode=0o6755)), [])
        self.assertEqual((self.top / "target/a").read_bytes(), b"2")
        self.assertEqual((self.top / "target/c/d").stat().st_mode & 0o7777, 0o755)

    def test_one_file_gets_the_targets_name(self):
        self.assertEqual(self.unpack(element("o")), [])
        self.assertEqual((self.top / "target").read_bytes(), b"x")

    def test_an_archive_that_is_cut_is_an_error(self):
        whole = self.archive(element("o/a", data=b"x" * 2000)).getvalue()
        with self.assertRaises(tarfile.ReadError):
            trees._unpack(io.BytesIO(whole[:1500]), "o", self.top / "target")
        self.assertEqual(list((self.top / "target").glob(".*")), [])
