"""Every action of the console: its id, key, words, and whether it changes something. Keys are remapped by id."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from textual.binding import Binding


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a key does."""

    id: str
    """What a user's keymap names: ``container.stop``."""
    key: str
    """Key, or keys separated by commas; never ctrl+b or ctrl+a, which are tmux's and screen's."""
    method: str
    """``action_<method>`` of the screen or app that has it."""
    label: str
    tip: str
    changes: bool = False
    """It changes something, so ``--readonly`` takes it away."""
    first: bool = False
    """Its key is heard before whatever has the focus."""
    rank: int = 5
    """The lower, the sooner it stands in the footer; 9 never does."""

    def binding(self) -> Binding:
        """As Textual has it."""
        return Binding(self.key, self.method, self.label, tooltip=self.tip, id=self.id, show=self.rank < 9,
                       priority=self.first)  # fmt: skip


APP = (
    Action("app.help", "question_mark,f1", "help", "Help", "What can be done on this screen", rank=1),
    Action("app.quit", "q", "leave", "Quit", "Leave the console; containers go on", rank=1),
    Action("app.redraw", "ctrl+l", "redraw", "Redraw", "Draw the whole screen again", rank=9),
    Action("app.palette", "colon,ctrl+p", "command_palette", "Commands", "Find a command by its words", rank=9),
    Action("app.alarms", "exclamation_mark", "alarms", "Alarms", "What rang, what stands, what was dismissed", rank=9),
    Action("app.theme", "f2", "next_theme", "Theme", "Next theme: dark, light, high contrast, ansi", rank=9),
    Action(
        "app.copy", "ctrl+c", "copy_or_quit", "Copy", "Copy the selected text; with none, leave", first=True, rank=9
    ),
)
MAIN = (
    Action("launch.new", "n", "new", "New", "Launch a container", changes=True, rank=2),
    Action("list.filter", "slash", "filter", "Filter", "Show only rows with these words", rank=6),
    Action("list.sort", "o", "sort", "Sort", "Sort by the next column", rank=7),
    Action("list.reverse", "O", "reverse", "Reverse", "Turn the order round", rank=9),
    Action("list.mine", "m", "mine", "Mine", "Mine only, or everybody's", rank=7),
    Action("tabs.next", "right_square_bracket", "tab(1)", "Next tab", "Containers, images, processes, runs", rank=9),
    Action("tabs.previous", "left_square_bracket", "tab(-1)", "Previous tab", "The tab before", rank=9),
    Action("tabs.containers", "1", "show_tab('containers')", "Containers", "Show containers", rank=9),
    Action("tabs.images", "2", "show_tab('images')", "Images", "Show images", rank=9),
    Action("tabs.processes", "3", "show_tab('processes')", "Processes", "Show GPU processes", rank=9),
    Action("tabs.runs", "4", "show_tab('runs')", "Runs", "Show checks, launches, pulls and builds", rank=9),
    Action("pace.faster", "plus,equals_sign", "pace(-1)", "Faster", "Look more often", rank=9),
    Action("pace.slower", "minus", "pace(1)", "Slower", "Look less often", rank=9),
)
CONTAINER = (
    Action("container.logs", "l", "logs", "Logs", "Follow its output", rank=3),
    Action("container.shell", "s", "shell", "Shell", "A shell inside it", changes=True, rank=3),
    Action("container.attach", "a", "attach", "Attach", "Join its own terminal", changes=True, rank=3),
    Action("container.check", "c", "check", "Check", "Is it fit for training?", changes=True, rank=3),
    Action("container.bench", "b", "bench", "Bench", "How fast is it, and what limits it?", changes=True, rank=4),
    Action("container.stop", "x", "stop", "Stop", "Stop it", changes=True, rank=3),
    Action("container.start", "u", "start", "Start", "Start it", changes=True, rank=7),
    Action("container.restart", "R", "restart", "Restart", "Stop it and start it", changes=True, rank=8),
    Action("container.pause", "p", "pause", "Pause", "Freeze it, or let it go on", changes=True, rank=8),
    Action("container.remove", "d", "remove", "Remove", "Remove it", changes=True, rank=7),
    Action("thing.copy", "y", "copy", "Copy", "Copy its name, id or command", rank=8),
    Action("thing.ring", "r", "ring", "Ring", "Ring when it ends, or when the GPU is free", rank=8),
)
IMAGE = (
    Action("image.check", "c", "check", "Check", "Check it in a fresh container", changes=True, rank=3),
    Action("image.bench", "b", "bench", "Bench", "Measure it in a fresh container", changes=True, rank=3),
    Action("image.pull", "p", "pull", "Pull", "Bring it here, or what its name leads to now", changes=True, rank=2),
    Action(
        "image.pin", "i", "pin", "Pin", "Hold it by digest in this folder's lock file, or no more", changes=True, rank=4
    ),
    Action("image.remove", "d", "remove_image", "Remove", "Remove it from this machine", changes=True, rank=5),
)
IMAGES = (
    Action("images.fits", "f", "fits", "Fits", "Only images that run on this machine, or all", rank=5),
    Action(
        "images.catalog", "a", "catalog", "Catalog", "The whole catalog, none of it, or what is recommended", rank=6
    ),
    Action("images.pull", "P", "pull_named", "Pull by name", "Type what to pull", changes=True, rank=7),
    Action("images.build", "B", "build", "Build", "Build one with the PyTorch and CUDA you want", changes=True, rank=7),
    Action("images.prune", "D", "prune", "Prune", "Remove images that nothing needs", changes=True, rank=7),
)
PROCESS = (Action("process.kill", "K", "kill", "Kill", "End one of your GPU processes", changes=True, rank=4),)
BACK = Action("screen.back", "escape,q", "back", "Back", "To the screen before", rank=1)
LOGS = (
    Action("logs.search", "slash", "search", "Search", "Look for words", rank=2),
    Action("logs.next", "n", "next_match(1)", "Next", "Next line with the words", rank=6),
    Action("logs.previous", "N", "next_match(-1)", "Previous", "Line with the words before this one", rank=8),
    Action("logs.follow", "f", "follow", "Follow", "Stay at the end as output comes, or stay where it is", rank=3),
    Action("logs.wrap", "w", "wrap", "Wrap", "Break long lines, or cut them; left and right scroll then", rank=4),
    Action("logs.timestamps", "t", "timestamps", "Times", "When each line was written", rank=5),
    Action("logs.save", "S", "save", "Save", "Write the whole output to a file", rank=5),
    Action("logs.copy", "y", "copy", "Copy", "Copy a line, the screen, or everything", rank=7),
)
LAUNCH = (
    Action("launch.start", "f5,ctrl+s", "launch", "Launch", "Start the container", changes=True, rank=2),
    Action("launch.more", "f4,ctrl+o", "more", "More", "Show the options that are rarely needed, or hide them", rank=3),
    Action("launch.save", "f3,ctrl+t", "save_profile", "Save as profile", "Keep what the form says under a name",
           changes=True, rank=4),
    Action("launch.clear", "ctrl+n", "clear_form", "Clear", "Empty the form to what it says where nothing was launched",
           rank=9),
    Action("launch.behind", "f6,ctrl+g", "behind", "Go on behind", "Leave it to go on; 4 shows it", rank=2),
)  # fmt: skip
MENDING = (
    Action(
        "launch.mend", "f7,ctrl+f", "mend", "Fix", "Change the field so that what is said beside it is mended", rank=3
    ),
    Action("launch.force", "f9,ctrl+y", "force", "Force", "Lift the refusal beside the field: it is meant", rank=4),
    Action("launch.undo", "f8,ctrl+r", "undo", "Undo", "Take the last of these changes back", rank=4),
)
RUN = (Action("run.cancel", "x", "cancel_run", "Cancel", "End this run", rank=1),)
GPU = (
    Action("gpu.span", "z", "span", "Span", "How far back the history goes", rank=4),
    Action("gpu.bench", "b", "bench", "Bench", "Measure it with a container or an image", changes=True, rank=3),
    Action("gpu.past", "h", "past", "Past", "What was measured on it, over time", rank=4),
)
BENCH = (
    Action("bench.compare", "v", "compare", "Compare", "Beside an earlier run", rank=3),
    Action("bench.past", "h", "past", "Past", "What was measured on these GPUs, over time", rank=4),
)
COMPARE = (
    Action("compare.older", "left_square_bracket,left", "other(1)", "Older", "Compare with an older run", rank=3),
    Action("compare.newer", "right_square_bracket,right", "other(-1)", "Newer", "Compare with a newer run", rank=3),
    Action("compare.pick", "o", "pick", "Others", "Choose from a list what it is compared with", rank=3),
    Action("compare.all", "a", "all", "All", "All results, or only those that changed or cannot be compared", rank=4),
)
ALARMS = (
    Action("alarms.dismiss", "d", "silence", "Dismiss", "Silent until it gets worse; once more lets it ring", rank=2),
    Action("alarms.wrong", "w", "wrong", "Wrong", "It is a false alarm: save its samples for judging", rank=3),
)
COPYING = (Action("copy.plain", "v", "plain", "Plain", "Show it bare, to be marked with the mouse", rank=2),)
REPLAY = (
    Action(
        "replay.pause", "space", "replay_pause", "Pause", "Let the recording stand still, or go on", first=True, rank=9
    ),
    Action("replay.back", "comma", "replay_by(-10)", "10 s back", "Go back in the recording", rank=9),
    Action("replay.ahead", "full_stop", "replay_by(10)", "10 s ahead", "Go ahead in the recording", rank=9),
    Action("replay.minute_back", "less_than_sign", "replay_by(-60)", "1 min back", "Go back in the recording", rank=9),
    Action(
        "replay.minute_ahead", "greater_than_sign", "replay_by(60)", "1 min ahead", "Go ahead in the recording", rank=9
    ),
    Action("replay.start", "circumflex_accent", "replay_to(0)", "Start", "To the start of the recording", rank=9),
    Action("replay.end", "dollar_sign", "replay_to(1)", "End", "To the end of the recording", rank=9),
    Action("replay.event", "e", "replay_event(1)", "Next event", "To where a container begins, ends or is killed",
           rank=9),
    Action("replay.event_before", "E", "replay_event(-1)", "Event before", "To the event before this moment", rank=9),
    Action("replay.slower", "left_parenthesis", "replay_speed(-1)", "Slower", "Play more slowly, 1/4 at least", rank=9),
    Action("replay.faster", "right_parenthesis", "replay_speed(1)", "Faster", "Play faster, 16 times at most", rank=9),
)  # fmt: skip
"""Only where a recording is played."""
ALL = (
    *APP, *MAIN, *CONTAINER, *IMAGE, *IMAGES, *PROCESS, BACK, *LOGS, *LAUNCH, *MENDING, *RUN, *GPU, *BENCH, *COMPARE,
    *ALARMS, *COPYING, *REPLAY,
)  # fmt: skip
FORBIDDEN_KEYS = ("ctrl+b", "ctrl+a")
"""tmux's and screen's prefix keys: they never reach us, and nobody may lose them."""


def bindings(actions: Iterable[Action], *, readonly: bool = False) -> list[Binding]:
    """Bindings of the actions; without those that change something when ``readonly``."""
    return [action.binding() for action in actions if not (readonly and action.changes)]
