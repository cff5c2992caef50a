"""The tests mirror the package: `tests/rank/test_search.py` tests `src/labelwise/rank/search.py`.

A package is tested by a file with its name, beside its modules or one folder up: `tests/data/formats/test_formats.py`
and `tests/datasets/test_shop.py` test the packages `data.formats` and `datasets.shop`. What does not follow the rule is
in the two tables below.
"""

from pathlib import Path

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "src" / "labelwise"
FEW_LINES = 40
"""Modules of so few lines may go without a test file: the tests of those who use them are enough."""

OTHER_TESTS = {
    "test_contributing": "the recipes of CONTRIBUTING.md",
    "test_crash_tools": "the programs in tools/crash/",
    "test_deployment": "the files in deploy/, and commands as a user without rights",
    "test_layers": "imports of all modules",
    "test_mirror": "names of all test files",
    "test_package": "the package as a whole: what an import costs, public names",
    "test_processes": "models after forks, in spawned processes, in threads",
    "test_process_state": "what fitting and predicting change in the process: nothing",
    "test_readme": "the README and its examples",
    "test_repository": "the files around the package",
    "test_structure": "the figures of tools/structure.py",
    "benchmarks/test_examples": "the programs in examples/",
    "benchmarks/test_paper": "the programs in benchmarks/",
    "benchmarks/test_readme_picture": "the programs in benchmarks/",
    "benchmarks/test_results_check": "the programs in benchmarks/",
    "cli/test_closed_output": "commands whose output nobody reads to the end",
    "cli/test_ensemble": "labelwise train with several members",
    "cli/test_neural": "all commands with a model that has an encoder",
    "docs/test_pages": "the examples of the pages",
    "docs/test_public_names": "the examples of the public names",
    "docs/test_site": "the site made of the pages",
    "fuzz/test_api_edges": "a part of tools/fuzz/api_edges.py",
    "fuzz/test_data_files": "a part of tools/fuzz/data_files.py",
    "incremental/test_use": "a grown model in the other parts: calibration, explanations, saving",
    "integrations/onnx/test_onnx_export": "the exported model, in a folder with the fixtures that it needs",
    "integrations/onnx/test_openvino": "an exported model in another program",
    "integrations/onnx/test_serving": "an exported model in the server",
    "kernels/test_solver_steps": "each step of the solver against a twin in numpy",
    "match/test_architectures": "fine-tuning of every architecture",
    "models/test_model_folders": "folders of models that somebody has changed",
    "metrics/test_options": "what metrics accept as cut-offs, names and buckets",
    "model_formats/test_old_models": "models that earlier versions saved",
    "models/test_contract": "what every kind of model promises",
    "report/test_browser": "the page's program in a real browser",
    "serve/test_browser": "the page in a browser",
    "serve/test_contract": "answers of all routes against the OpenAPI document",
    "serve/test_incremental": "the server with a model that grows",
    "serve/test_malformed": "all routes with arbitrary requests",
    "serve/test_neural": "the server with a model that has an encoder",
    "storage/test_check_limits": "the limits of what checks accept",
    "storage/test_system_calls": "what the system is asked for, and what its refusals become",
    "tools/test_check_dist": "the program that checks a release, and hatch_build.py",
    "tools/test_dist": "the programs that make a release",
    "tools/test_fuzz": "the programs that try hostile input",
    "tools/test_mutation": "the program that changes the code",
}
"""Test files that are not called after a module, with what they test."""

TESTED_BY = {
    "__init__": "test_package",
    "errors": "test_package",
    "events": "cli/test_show",
    "cli/command": "cli/test_cli",
    "cli/import_pecos": "integrations/test_pecos",
    "cli/installation": "cli/test_doctor",
    "cli/runs": "cli/test_demo",
    "cli/settings": "config/test_settings",
    "cli/train_members": "cli/test_ensemble",
    "cli/train_run": "cli/test_train",
    "comparison/tables": "cli/test_compare",
    "config/__init__": "config/test_settings",
    "config/features": "config/test_settings",
    "config/flat": "models/test_base",
    "config/index": "config/test_settings",
    "config/matcher": "config/test_settings",
    "config/models": "config/test_settings",
    "config/ranker": "config/test_settings",
    "data/batch": "data/test_load",
    "data/builder": "data/formats/test_jsonl",
    "data/formats/format": "data/formats/test_formats",
    "data/formats/matrix": "data/formats/test_pecos",
    "data/formats/sparse": "data/formats/test_xc",
    "data/formats/writer": "data/test_conversion",
    "data/options": "data/test_load",
    "data/targets": "models/test_linear_tree",
    "datasets/paper/prepare": "datasets/paper/test_get",
    "datasets/shop/brands": "datasets/test_shop",
    "datasets/shop/catalog": "datasets/test_shop",
    "datasets/shop/clicks": "datasets/test_shop",
    "datasets/shop/generate": "datasets/test_shop",
    "datasets/shop/grammar": "datasets/test_shop",
    "datasets/shop/products": "datasets/test_shop",
    "datasets/shop/queries": "datasets/test_shop",
    "datasets/shop/ragged": "datasets/test_shop",
    "datasets/shop/spelling": "datasets/test_shop",
    "datasets/shop/words": "datasets/test_shop",
    "datasets/shop/write": "datasets/test_shop",
    "explanations/context": "explanations/test_single_model",
    "explanations/explainer": "explanations/test_single_model",
    "explanations/integrated_gradients": "explanations/test_single_model",
    "explanations/paths": "explanations/test_single_model",
    "explanations/rendering": "cli/test_explain",
    "features/blocks": "features/test_tfidf",
    "features/characters": "features/test_tfidf",
    "features/encoder_folder": "features/test_encoder",
    "features/onnx_encoder": "integrations/onnx/test_onnx_export",
    "features/pooling": "features/test_encoder",
    "features/pretrained": "features/test_encoder",
    "features/sklearn_import": "features/test_tfidf",
    "incremental/examples": "incremental/test_grow",
    "incremental/label_weights": "incremental/test_grow",
    "index/balanced": "index/test_build",
    "index/bisect": "index/test_build",
    "index/kmeans": "index/test_build",
    "index/rows": "index/test_build",
    "integrations/annif_hyperopt": "integrations/test_annif",
    "integrations/onnx_export": "integrations/onnx/test_onnx_export",
    "match/base": "match/test_finetuned",
    "match/frozen": "models/test_xtransformer",
    "match/heads": "match/test_label_init",
    "match/recall": "match/test_finetuned",
    "match/training/checkpoint": "match/training/test_loop",
    "match/training/device_data": "match/training/test_batches",
    "match/training/divergence": "match/training/test_loop",
    "match/training/optimizer": "match/training/test_step",
    "metrics/__init__": "metrics/test_scores",
    "metrics/buckets": "metrics/test_evaluation",
    "metrics/tally": "metrics/test_scores",
    "models/ensemble/members": "models/ensemble/test_model",
    "models/ensemble/selection": "models/ensemble/test_rules",
    "models/exemplars": "incremental/test_grow",
    "models/fitted_ranker": "models/test_xtransformer",
    "models/fitted_tree": "models/test_linear_tree",
    "models/growth": "incremental/test_grow",
    "models/pipeline": "models/test_xtransformer",
    "models/prediction_cache": "models/ensemble/test_model",
    "models/scored_trees": "explanations/test_single_model",
    "models/sharing": "models/ensemble/test_model",
    "models/stages": "models/test_xtransformer",
    "rank/features": "rank/test_ranker",
    "rank/score_breakdown": "explanations/test_single_model",
    "report/split_evaluation": "report/test_write",
    "report/quality": "report/test_write",
    "report/sections": "report/test_write",
    "serve/middleware": "serve/test_app",
    "serve/limits": "serve/test_app",
    "serve/logs": "serve/test_app",
    "serve/protocol": "serve/test_server",
    "serve/schema": "serve/test_app",
    "serve/suggest": "serve/test_app",
    "sklearn/answers": "sklearn/test_classifiers",
    "sklearn/estimator": "sklearn/test_classifiers",
    "sklearn/classes": "sklearn/test_classifiers",
    "storage/__init__": "storage/test_objects",
    "storage/shared_parts": "models/ensemble/test_model",
    "models/pickling": "models/test_contract",
}
"""Longer modules without a test file of their own, with the file that tests them."""


def modules() -> dict[str, int]:
    """Lines of each module, by its path in the package without the suffix."""
    return {
        path.relative_to(PACKAGE).with_suffix("").as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in PACKAGE.rglob("*.py")
    }


def all_test_files() -> set[str]:
    """The paths of all test files in `tests/`, without the suffix."""
    return {path.relative_to(TESTS).with_suffix("").as_posix() for path in TESTS.rglob("test_*.py")}


def module_of(test_file: str) -> list[str]:
    """The modules that may be meant by the name of a test file."""
    folder, _, name = test_file.rpartition("test_")
    package = folder.rstrip("/")
    found = [f"{folder}{name}", f"{folder}{name}/__init__"]
    return [*found, f"{package}/__init__"] if package.rpartition("/")[2] == name else found


def test_every_test_file_is_called_after_a_module():
    there = modules()
    strangers = {name for name in all_test_files() if not any(module in there for module in module_of(name))}
    assert sorted(strangers) == sorted(OTHER_TESTS), "rename the file, or say in OTHER_TESTS what it tests"


def test_every_longer_module_has_a_test_file():
    own = {module for name in all_test_files() for module in module_of(name)}
    missing = {name for name, n_lines in modules().items() if n_lines > FEW_LINES and name not in own}
    assert sorted(missing - TESTED_BY.keys()) == [], "add a test file, or say in TESTED_BY which file tests the module"


def test_the_tables_name_what_exists():
    assert sorted(TESTED_BY.keys() - modules().keys()) == [], "there is no such module; take it out of TESTED_BY"
    assert sorted(set(TESTED_BY.values()) - all_test_files()) == [], "there is no such test file; mend TESTED_BY"
