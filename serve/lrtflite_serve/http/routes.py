"""The table of endpoints, from which routes and the OpenAPI document are made."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from lrtflite_serve.http.answering import as_json
from lrtflite_serve.http.api import Api
from lrtflite_serve.http.endpoint import JSON, Endpoint, Parameter
from lrtflite_serve.http.handlers import answers, classes, lessons, pictures, transfers, tray
from lrtflite_serve.http.openapi import document
from lrtflite_serve.service.pixels import PICTURES, RAW

FRAME = (RAW, *PICTURES)
ZIP, JPEG = transfers.ZIP, "image/jpeg"
LESSON, SLOT = "/api/lessons/{lesson}", "/api/classes/{slot:slot}"
PICTURE, TRAY = "/api/pictures/{picture:path}", "/api/tray/{frame}"


async def openapi(api: Api, request: Request) -> Response:
    return as_json(document(ENDPOINTS))


_STREAM = Parameter("stream", "string", "Name of a stream of frames, which gets settled answers.")
_TOP = Parameter("top", "integer", "Number of answers.")
_NUMBER = Parameter("number", "integer", "Number of the frame in its lesson, from 0.")
_AFTER = Parameter("after", "integer", "Number of the last picture that was seen.")
_SLOT = Parameter("slot", "integer", "Slot of the class.")
_IDS = Parameter("ids", "string", "Ids with commas: only these frames, if they still wait.")
_FORM = Parameter("form", "string", "float32 or int8; int8 needs kept pictures.")

ENDPOINTS = (
    Endpoint("GET", "/api", answers.about, "Facts about the service.", "About"),
    Endpoint("GET", "/api/openapi.json", openapi, "This document.", JSON),
    Endpoint("GET", "/api/classes", classes.classes, "The classes of the learner.", "Classes"),
    Endpoint(
        "GET", f"{SLOT}/thumbnail", classes.thumbnail, "A picture of a class.", JPEG, errors=(404,)
    ),
    Endpoint(
        "PATCH", SLOT, classes.rename, "Rename a class.", "Classes", ("Name",), errors=(404, 409)
    ),
    Endpoint("DELETE", SLOT, classes.forget, "Forget a class.", "Classes", errors=(404, 409)),
    Endpoint("POST", "/api/undo", classes.undo, "Take back the last change.", "Classes"),
    Endpoint(
        "POST",
        "/api/predict",
        answers.predict,
        "Name what a frame shows.",
        "Answer",
        FRAME,
        query=(_STREAM, _TOP),
        errors=(413, 415),
    ),
    Endpoint(
        "POST",
        "/api/lessons",
        lessons.begin,
        "Begin a lesson about a class.",
        "Lesson",
        ("Target",),
        status=201,
        errors=(409,),
    ),
    Endpoint(
        "POST",
        f"{LESSON}/frames",
        lessons.add_frame,
        "Add a frame to a lesson.",
        "Lesson",
        FRAME,
        query=(_NUMBER,),
        errors=(404, 409, 413, 415),
    ),
    Endpoint("GET", LESSON, lessons.state, "The state of a lesson.", "Lesson", errors=(404,)),
    Endpoint(
        "POST",
        f"{LESSON}/commit",
        lessons.commit,
        "Learn what the frames show.",
        "Learned",
        errors=(404, 409, 507),
    ),
    Endpoint("DELETE", LESSON, lessons.cancel, "Cancel a lesson.", "Classes", errors=(404,)),
    Endpoint(
        "POST",
        "/api/teach",
        lessons.teach,
        "Teach a class from the device's camera.",
        "Lesson",
        ("Teaching",),
        status=202,
        errors=(409, 503),
    ),
    Endpoint(
        "GET",
        "/api/camera/frame",
        answers.camera_frame,
        "The newest picture of the device's camera; 204 if none came within 10 s.",
        JPEG,
        query=(_AFTER,),
        errors=(503,),
    ),
    Endpoint(
        "GET",
        "/api/events",
        answers.events,
        "Events as they happen.",
        "text/event-stream",
        errors=(429,),
    ),
    Endpoint("GET", "/api/tray", tray.tray, "Frames that wait for a name.", "Tray"),
    Endpoint("DELETE", "/api/tray", tray.clear, "Empty the tray.", "Tray", query=(_IDS,)),
    Endpoint(
        "POST",
        "/api/tray/teach",
        tray.teach,
        "Teach a class frames of the tray.",
        "Learned",
        ("TrayTarget",),
        errors=(404, 409),
    ),
    Endpoint("GET", TRAY, tray.picture, "A frame of the tray.", JPEG, errors=(404,)),
    Endpoint("DELETE", TRAY, tray.remove, "Remove a frame from the tray.", "Tray", errors=(404,)),
    Endpoint(
        "GET",
        "/api/pictures",
        pictures.pictures,
        "The kept pictures of a class.",
        "Pictures",
        query=(_SLOT,),
        errors=(404, 501),
    ),
    # Before the next ones, whose path takes slashes.
    Endpoint(
        "POST",
        f"{PICTURE}/move",
        pictures.move,
        "Move a kept picture to another class.",
        "Classes",
        ("Slot",),
        errors=(404, 409, 501),
    ),
    Endpoint("GET", PICTURE, pictures.picture, "A kept picture.", "image/png", errors=(404, 501)),
    Endpoint(
        "DELETE",
        PICTURE,
        pictures.remove,
        "Delete a kept picture.",
        "Classes",
        errors=(404, 409, 501),
    ),
    Endpoint(
        "POST",
        f"{SLOT}/relearn",
        pictures.relearn,
        "Forget a class and learn it again from its kept pictures.",
        "Learned",
        errors=(404, 409, 501),
    ),
    Endpoint(
        "GET",
        "/api/diagnosis",
        answers.diagnosis,
        "What to improve, from kept pictures or from the state.",
        JSON,
        errors=(409,),
    ),
    Endpoint(
        "GET", "/api/state", transfers.download_state, "The state as a zip.", ZIP, errors=(409,)
    ),
    Endpoint(
        "PUT",
        "/api/state",
        transfers.upload_state,
        "Replace the state, which is set aside.",
        "Replaced",
        (ZIP,),
        errors=(409, 413, 415, 507),
    ),
    Endpoint(
        "GET",
        "/api/bundle",
        transfers.download_bundle,
        "A bundle that ships the state, as a zip.",
        ZIP,
        errors=(409,),
    ),
    Endpoint(
        "GET",
        "/api/model",
        transfers.download_model,
        "A plain model of what was learned, as a zip.",
        ZIP,
        query=(_FORM,),
        errors=(409, 501),
    ),
)
