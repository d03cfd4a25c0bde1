"""`inferscope.memory` beside the real TensorFlow and Keras on the CPU: results are unchanged, layers have their names,
and what TensorFlow does not count is not said."""

from __future__ import annotations

from importlib.util import find_spec

from test_memory_api import printed

# requirements.txt says for which Pythons there is no TensorFlow.
if find_spec("tensorflow") is not None:

    def test_tensorflow_on_a_cpu_is_left_alone_and_said_to_count_nothing(tmp_path):
        said = printed(
            """
            import os
            os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
            from inferscope.memory import CPUMemoryProfiler, MemoryTracker, TFMemoryProfiler, TensorFlowDeviceCollector

            def refused():
                try:
                    TFMemoryProfiler()
                except RuntimeError as error:
                    return str(error)

            print(refused())
            import tensorflow as tf
            from tensorflow.python.eager import context
            with MemoryTracker(3600, output=None) as tracker:
                tracker.sample_now()
            print(refused())
            print(context.context()._initialized, tracker.get_statistics()["collector_errors"])
            product = tf.matmul(tf.ones((64, 64)), tf.ones((64, 64)))
            print(refused())
            # TensorFlow answers for its CPU too, and always this: to repeat it would be a lie.
            print(tf.config.experimental.get_memory_info("CPU:0"))
            with CPUMemoryProfiler() as profiler:
                again = profiler.profile_function(tf.matmul, tf.ones((64, 64)), tf.ones((64, 64)))
            print(bool(tf.reduce_all(again == product)), profiler.last_result.function_name)
            print(TensorFlowDeviceCollector().is_available())
            """,
            tmp_path,
        )
        assert said[0] == "TensorFlow is not imported in this process: import tensorflow first"
        assert said[1] == "TensorFlow has not started its devices in this process: run an operation first"
        assert said[2] == "False 0"
        assert said[3] == "TensorFlow has no GPU:0 here: use CPUMemoryProfiler for host memory"
        assert said[4] == "{'current': 0, 'peak': 0}"
        assert said[5].startswith("True ") and said[6] == "False"

    def test_a_keras_layer_and_model_are_profiled_by_name(tmp_path):
        said = printed(
            """
            import os
            os.environ["KERAS_BACKEND"], os.environ["TF_CPP_MIN_LOG_LEVEL"] = "tensorflow", "3"
            import keras, numpy
            from inferscope.memory import CPUMemoryProfiler, ProfiledLayer, profile_function
            keras.utils.set_random_seed(0)
            hidden, scores = keras.layers.Dense(16, name="hidden"), keras.layers.Dense(2, name="scores")
            model = keras.Sequential([keras.layers.Input((8,)), hidden, scores])
            x = numpy.ones((4, 8), "float32")
            plain, profiler = model(x), CPUMemoryProfiler()
            around = ProfiledLayer(hidden, profiler=profiler)
            print(bool(numpy.array_equal(scores(around(x)), plain)), around.name)
            print(bool(numpy.array_equal(profiler.profile_function(model.predict, x, verbose=0), plain)))
            print([result.function_name for result in profiler.results])
            """,
            tmp_path,
        )
        assert said[0].startswith("True"), said
        assert said[1] == "True"
        assert "hidden" in said[2], said
