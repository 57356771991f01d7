"""A ROS 2 node that learns: it classifies images, and is taught, corrected and undone by services.

    python3 ros2_node.py --ros-args -r image:=/camera/image_raw -p bundle:=photos -p state:=state

    ros2 param set /lrtflite label "red mug"
    ros2 service call /lrtflite/teach std_srvs/srv/Trigger     # shows it for `seconds` seconds
    ros2 service call /lrtflite/forget std_srvs/srv/Trigger    # unlearns `label`
    ros2 service call /lrtflite/undo std_srvs/srv/Trigger

It subscribes to `image` (sensor_msgs/Image) and publishes `classification`
(vision_msgs/Classification: the three likeliest classes, with the header of the image), `settled`
(std_msgs/String: a class, `unsure` or `unknown`) and `lesson` (std_msgs/String). Only messages that
ROS ships are used, so nothing has to be built.

Untested with ROS: the functions that use rclpy were written from its documentation. `Classifier`,
below, and ros2_image.py need no ROS and are tested.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

from ros2_image import ImageMessage, rgb_picture

from lrtflite import Consensus, InputError, Learner, Lesson, LrtfliteError, Prediction, fit_frame

TOP = 3


class Classifier:
    """A learner as the node uses it: images in, answers out, one lesson at a time."""

    def __init__(self, learner: Learner, *, seconds: float = 20.0, fps: float = 5.0) -> None:
        self._learner, self._seconds, self._fps = learner, seconds, fps
        self._size = learner.bundle.manifest.input_size
        self._consensus = Consensus.of(learner)
        self._lesson: Lesson | None = None
        self._label = ""
        # The settled answer: a class, `unsure` or `unknown`.
        self.answer = "unsure"

    def see(self, message: ImageMessage) -> list[Prediction]:
        """Return the answers for an image; an empty list before anything is learned.

        A lesson that is being recorded gets the image too.
        """
        frame = fit_frame(rgb_picture(message), self._size)
        if self._lesson is not None:
            self._lesson.offer(frame)
        if not self._learner.learned:
            return []
        [guesses] = self._learner.predict(frame, top=TOP)
        settled = self._consensus.add(guesses)
        self.answer = settled.kind if settled.label is None else settled.label
        return guesses

    def teach(self, label: str) -> str:
        """Begin to record a lesson; return a line about it."""
        self._refuse_during_a_lesson()
        if not label.strip():
            raise InputError("Expected a label to teach, got none", "set the parameter `label`")
        self._label = label
        self._lesson = Lesson(self._learner, label, seconds=self._seconds, fps=self._fps)
        return f"show {label} for {self._seconds:g} s"

    def ended(self) -> str | None:
        """Return a line about a lesson that has just ended, else None; call it often."""
        lesson = self._lesson
        if lesson is None or not lesson.is_over:
            # Images may have stopped; the lesson must still end.
            if lesson is not None and lesson.elapsed >= self._seconds:
                lesson.finish()
            return None
        self._lesson = None
        self._consensus.clear()
        if lesson.report is not None:
            return f"learned {self._label} from {lesson.report.frames} images"
        return f"did not learn {self._label}: {lesson.error}"

    def forget(self, label: str) -> str:
        """Unlearn a class; return a line about it."""
        self._refuse_during_a_lesson()
        self._learner.forget(label)
        self._consensus.clear()
        return f"forgot {label}"

    def undo(self) -> str:
        """Take the last change back; return a line about it."""
        self._refuse_during_a_lesson()
        self._learner.undo()
        self._consensus.clear()
        return "took the last change back"

    def close(self) -> None:
        """Cancel a lesson that is being recorded, and close the learner."""
        if self._lesson is not None:
            self._lesson.cancel()
            self._lesson.wait()
        self._learner.close()

    def _refuse_during_a_lesson(self) -> None:
        if self._lesson is not None:
            raise InputError(f"Expected no lesson, got one about {self._label}", "wait for its end")


# Parameters of the node, and their defaults.
PARAMETERS = {"bundle": "photos", "state": "state", "label": "", "seconds": 20.0, "fps": 5.0}


def publish_answers(node: Any, classifier: Classifier) -> None:
    """Classify each image that arrives, and say when a lesson has ended."""
    from rclpy.qos import qos_profile_sensor_data
    from sensor_msgs.msg import Image
    from std_msgs.msg import String
    from vision_msgs.msg import Classification, ObjectHypothesis

    answers = node.create_publisher(Classification, "classification", 10)
    settled = node.create_publisher(String, "settled", 10)
    lessons = node.create_publisher(String, "lesson", 10)

    def see(message: Any) -> None:
        try:
            guesses = classifier.see(message)
        except LrtfliteError as error:
            node.get_logger().error(str(error), throttle_duration_sec=5.0)
            return
        results = [ObjectHypothesis(class_id=g.label, score=float(g.probability)) for g in guesses]
        answers.publish(Classification(header=message.header, results=results))
        settled.publish(String(data=classifier.answer))

    def look() -> None:
        line = classifier.ended()
        if line is not None:
            lessons.publish(String(data=line))
            node.get_logger().info(line)

    # Only the newest image counts: qos_profile_sensor_data drops those that come too fast.
    node.create_subscription(Image, "image", see, qos_profile_sensor_data)
    node.create_timer(0.1, look)


def offer_services(node: Any, classifier: Classifier) -> None:
    """Teach, forget and undo, for the class of the parameter `label`."""
    from std_srvs.srv import Trigger

    def offer(name: str, work: Callable[[], str]) -> None:
        def handle(request: Any, response: Any) -> Any:
            try:
                response.message, response.success = work(), True
            except LrtfliteError as error:
                response.message, response.success = str(error), False
            return response

        node.create_service(Trigger, f"~/{name}", handle)

    def label() -> str:
        return str(node.get_parameter("label").value)

    offer("teach", lambda: classifier.teach(label()))
    offer("forget", lambda: classifier.forget(label()))
    offer("undo", classifier.undo)


def main() -> None:
    """Run the node until Ctrl-C."""
    try:
        import rclpy
        import vision_msgs.msg  # noqa: F401  before anything starts
    except ImportError as error:
        sys.exit(f"Expected ROS 2 with vision_msgs, got none ({error}); source its setup.bash")

    rclpy.init()
    node = rclpy.create_node("lrtflite")
    for name, default in PARAMETERS.items():
        node.declare_parameter(name, default)
    values = {name: node.get_parameter(name).value for name in PARAMETERS}
    try:
        learner = Learner.open(values["bundle"], values["state"])
    except LrtfliteError as error:
        sys.exit(str(error))
    classifier = Classifier(learner, seconds=values["seconds"], fps=values["fps"])
    with suppress(KeyboardInterrupt), closing(classifier):
        publish_answers(node, classifier)
        offer_services(node, classifier)
        rclpy.spin(node)
    node.destroy_node()
    rclpy.try_shutdown()


if __name__ == "__main__":
    main()
