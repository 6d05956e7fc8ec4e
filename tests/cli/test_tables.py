"""read_sql, and read_csv by columns: kinds of cells, parameters, what is missing, and what mistakes say."""
import sqlite3
import unittest
from pathlib import Path

from tl import InFolder


class Tables(InFolder):
    def make(self, *statements):
        base = sqlite3.connect(self.folder / "a.db")
        for statement in statements:
            base.execute(*statement if isinstance(statement, tuple) else (statement,))
        base.commit()
        base.close()

    def test_sql_rows(self):
        self.make("CREATE TABLE t (id INTEGER, name TEXT, x REAL, b BLOB)", ("INSERT INTO t VALUES (?, ?, ?, ?)", (1, "é", 0.5, b"\1\2")),
                  ("INSERT INTO t VALUES (?, ?, ?, ?)", (9223372036854775807, None, None, b"")))
        self.prints("""
            for row in read_sql("a.db", "SELECT * FROM t") { print(row) }
            print(read_sql("a.db", "SELECT count(*) AS n FROM t;")[0].n, read_sql("a.db", "SELECT * FROM t WHERE 0"))
            """, '{"id": 1, "name": "é", "x": 0.5, "b": [1 2]}', '{"id": 9223372036854775807, "name": none, "x": none, "b": []}', "2 []")

    def test_sql_columns(self):
        self.make("CREATE TABLE t (id, x, s, m)", "INSERT INTO t VALUES (1, 1, 'a', NULL)", "INSERT INTO t VALUES (2, NULL, NULL, NULL)",
                  "INSERT INTO t VALUES (3, 2.5, 7, NULL)")
        self.prints("""
            let t = read_sql("a.db", "SELECT * FROM t", columns: true)
            for name, column in t { print(name, type(column), column) }
            print(t.id.dtype, t.x.dtype)
            print(read_sql("a.db", "SELECT id, s FROM t WHERE 0", columns: true))
            """, "id tensor [1 2 3]", "x tensor [1.  nan 2.5]", 's list ["a", none, 7]', "m tensor [nan nan nan]", "int64 float64", '{"id": [], "s": []}')

    def test_sql_parameters(self):
        self.make("CREATE TABLE t (id)")
        self.prints("""
            print(read_sql("a.db", "SELECT ? AS a, ? AS b, ? AS c, ? AS d, ? AS e", list(1, 2.5, "x'y", none, true))[0])
            print(read_sql("a.db", "SELECT :x + @y AS s, $z AS z", {"x": 1, "y": sum([2]), "z": "z"})[0])
            print(read_sql("a.db", "SELECT ? + ? AS s", (1, 2))[0], read_sql("a.db", "SELECT ? + ? AS s", [3, 4])[0])
            """, '{"a": 1, "b": 2.5, "c": "x\'y", "d": none, "e": 1}', '{"s": 3, "z": "z"}', '{"s": 3} {"s": 7}')

    def test_sql_mistakes(self):
        self.make("CREATE TABLE t (id, s)", ("INSERT INTO t VALUES (1, CAST(? AS TEXT))", (b"\xff",)))
        (self.folder / "text.db").write_text("no database, " * 100)
        self.fails('read_sql("none.db", "SELECT 1")', "error[io]: ")
        self.fails('read_sql("text.db", "SELECT 1 FROM t")', "error[format]: text.db: file is not a database")
        self.fails('let a = 1\nlet b = read_sql("a.db", "SELECT * FORM t")', 'error[value]: read_sql: near "FORM": syntax error, at byte 9 of the query')
        self.fails('let a = 1\nlet b = read_sql("a.db", "SELECT * FORM t")', "--> program.tl:2:9")
        self.fails('read_sql("a.db", "SELECT abs(-9223372036854775807 - 1)")', "error[value]: read_sql: integer overflow")
        self.fails('read_sql("a.db", "DELETE FROM t")', "read_sql: attempt to write a readonly database")
        self.fails('read_sql("a.db", "SELECT 1; SELECT 2")', "read_sql: the query is one statement, but another begins at byte 10")
        self.fails('read_sql("a.db", " ")', "read_sql: the query is empty")
        self.fails('read_sql("a.db", "SELECT 1 AS a, 2 AS a")', "read_sql: two columns of the result are called `a`")
        self.fails('read_sql("a.db", "SELECT 1 AS a, 2 AS a")', "help: name one of them: SELECT ... AS other_name")
        self.fails('read_sql("a.db", "SELECT ?, ?", list(1))', "read_sql: the query has 2 parameters, but 1 is given")
        self.fails('read_sql("a.db", "SELECT :a", {"b": 1})', "error[key]: read_sql: the query's parameter :a has no value")
        self.fails('read_sql("a.db", "SELECT ?", list(list(1)))', "read_sql: a parameter must be a number, a string, a bool or none, but it is ")
        self.fails('read_sql("a.db", "SELECT ?", 5)', "error[type]: ")
        self.fails('read_sql("a.db", "SELECT s FROM t")', "error[format]: a.db: column `s` of row 0 is not UTF-8")
        Path(self.folder, "libsqlite3.so.0").write_text("not a library")
        result = self.run_here('read_sql("a.db", "SELECT 1")', env={"LD_LIBRARY_PATH": self.folder})
        self.assertIn("queries of SQLite databases need the library libsqlite3.so.0, which cannot be loaded: ", result.err)
        self.assertIn("help: on Debian and Ubuntu: apt install libsqlite3-0", result.err)

    def test_csv_columns(self):
        (self.folder / "a.csv").write_text('id,x,name,m,q\r\n1,0.5,a,,"1"\r\n\r\n2,,"b, c",,"2"\r\n-3,1e3,7,,3\r\n')
        self.prints("""
            let t = read_csv("a.csv", header: true, columns: true)
            for name, column in t { print(name, type(column), column) }
            print(t.id.dtype, t.x.dtype)
            for column in read_csv("a.csv", columns: true) { print(column) }
            write_file("one.csv", "5\\n6.5\\n7\\n")
            print(read_csv("one.csv", columns: true), read_csv("one.csv", header: true, columns: true))
            write_file("none.csv", "")
            print(read_csv("none.csv", columns: true), read_csv("none.csv", header: true, columns: true))
            """, "id tensor [ 1  2 -3]", "x tensor [   0.5    nan 1000. ]", 'name list ["a", "b, c", 7]', "m tensor [nan nan nan]", 'q list ["1", "2", 3]',
            "int64 float64", '["id", 1, 2, -3]', '["x", 0.5, "", 1000.0]', '["name", "a", "b, c", 7]', '["m", "", "", ""]', '["q", "1", "2", 3]',
            '[[5.  6.5 7. ]] {"5": [6.5 7. ]}', "[] {}")

    def test_csv_numbers_are_exact(self):
        numbers = ["0.1", "123456789012345678", "9223372036854775807", "9223372036854775808", "1.7976931348623157e308", "5e-324", "-0.0",
                   "9007199254740993.0", "0.30000000000000004", "1e22", "123456789.123456789", "+5", "5.", ".5", "-inf", "2.2250738585072011e-308"]
        (self.folder / "n.csv").write_text("".join(f"{n}\n" for n in numbers))
        values = [int(n) if n.lstrip("+-").isdigit() and abs(int(n)) < 1 << 63 else float(n) for n in numbers]
        self.prints("""
            for row in read_csv("n.csv") { print(row[0]) }
            """, *[str(v) for v in values])
        (self.folder / "n.csv").write_text("1e\n1-2\n.\n-\n+-1\n1.2.3\n0x10\n1 \nnano\n")
        self.prints('print(read_csv("n.csv"))', '[["1e"], ["1-2"], ["."], ["-"], ["+-1"], ["1.2.3"], ["0x10"], ["1 "], ["nano"]]')

    def test_csv_mistakes(self):
        (self.folder / "a.csv").write_text("a,b\n1,2\n3\n")
        (self.folder / "b.csv").write_text("1,2\n3,4,5\n")
        (self.folder / "c.csv").write_text("a,a\n1,2\n")
        (self.folder / "d.csv").write_text('1\n"2\n3\n')
        self.fails('read_csv("a.csv", header: true, columns: true)', "error[format]: a.csv: line 3 has 1 field, the header has 2")
        self.fails('read_csv("b.csv", columns: true)', "error[format]: b.csv: line 2 has 3 fields, the first row has 2")
        self.fails('read_csv("c.csv", header: true, columns: true)', 'error[format]: c.csv: two columns are called "a"')
        self.fails('read_csv("d.csv", columns: true)', "error[format]: d.csv: the quote opened in line 2 is never closed")


if __name__ == "__main__":
    unittest.main()
