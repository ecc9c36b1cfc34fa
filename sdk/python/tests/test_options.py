import json
import tempfile
import unittest

from clove.options import Options, read


class Settings(unittest.TestCase):
    def test_they_become_flags(self):
        o = read({"memory": "1G", "cpus": 2, "allow": ["a.example", "b.example"], "env": {"TOKEN": "x"}})
        self.assertEqual(o.flags(), ["--memory=1G", "--cpus=2", "--allow=a.example", "--allow=b.example", "--timeout=24h"])
        self.assertEqual(hash(o), hash(read({"memory": "1G", "cpus": "2", "allow": ("a.example", "b.example")})))

    def test_a_mistake_is_one_error_that_names_the_key(self):
        for settings, said in (
            ({"memroy": "1G"}, "no setting 'memroy'; there are rootfs, "),
            ({"memory": ["1G"]}, "memory: .* is not a text"),
            ({"memory": True}, "memory: True is not a text"),
            ({"allow": "a.example"}, "allow: 'a.example' is not a list of texts"),
            ({"env": {"A": 1}}, "env: .* is not an object of texts"),
            ({"wait": 0}, "wait: 0 is not a number above 0"),
            ({"workdir": "app"}, "workdir: 'app' is no absolute path"),
            (["memory"], "no object"),
        ):
            with self.assertRaisesRegex(ValueError, said):
                read(settings)

    def test_they_may_be_in_a_file(self):
        with tempfile.NamedTemporaryFile("w") as file:
            json.dump({"user": "root"}, file)
            file.flush()
            self.assertEqual(read(file.name), Options(user="root"))
            file.write("}")
            file.flush()
            with self.assertRaisesRegex(ValueError, "is no JSON"):
                read(file.name)
        with self.assertRaises(FileNotFoundError):
            read("/none/clove.json")
