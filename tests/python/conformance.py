"""The kernel against jupyter_kernel_test: what every client of Jupyter may ask of a kernel."""
import unittest

import jupyter_kernel_test


class Conformance(jupyter_kernel_test.KernelTests):
    kernel_name = "tl"
    language_name = "tl"
    file_extension = ".tl"
    code_hello_world = 'print("hello, world")'
    code_stderr = 'eprint("oops")'
    code_generate_error = "[1.0, 2.0] @ [1.0, 2.0, 3.0]"
    code_execute_result = [{"code": "6 * 7", "result": "42"}, {"code": "[1, 2] + 1", "result": "[2 3]"},
                           {"code": 'let s = "a"\ns + "b"', "result": "ab"}]
    code_display_data = [{"code": "plot([1, 2, 4])", "mime": "image/svg+xml"}]
    code_inspect_sample = "softmax"
    completion_samples = [{"text": "softm", "matches": {"softmax"}}, {"text": "let x = log_soft", "matches": {"log_softmax"}}]
    complete_code_samples = ["1 + 1", "fn f(x) { x }", "let x = [1,\n2]", "// a comment"]
    incomplete_code_samples = ["fn f(x) {", "[1, 2,", 'print("a', "/* open"]
    invalid_code_samples = ["f)", "]"]


if __name__ == "__main__":
    unittest.main()
