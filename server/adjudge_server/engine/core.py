"""The engine: tasks in, verdicts out.

::

    task -> recipe or verifier -> plan of calls -> cache -> lane -> verdict -> combine -> record

``inline`` verifiers run here and now; everything else becomes a job of the dispatcher. A plain task needs one call; a
recipe is run by a small coroutine that asks :mod:`adjudge_verifiers.compose` which parts to run next.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, NamedTuple

from adjudge.types import Task, Verdict
from adjudge_sandbox.base import Limits, Program, Run, RunResult, Sandbox
from adjudge_verifiers import compose, registry
from adjudge_verifiers.compose import Part, Recipe, Route
from adjudge_verifiers.errors import InvalidTask, boundary, nearest

from ..logs import get_logger
from ..metrics import Metrics
from ..rows import RowRoute
from ..settings import Settings
from ..store import Store, open_store
from .cache import Flights, VerdictCache, again, cache_key, copied, fresh
from .execution import Execution, NotExecuted
from .executors import Executors
from .job import Dispatcher, Job, Submission
from .local import LocalDispatcher
from .prepare import Prepared, prepare
from .run import judge

__all__ = ["Engine", "Plan"]

_BREATH_S = 0.005
"""How long inline work may keep the event loop busy before others get their turn."""

_MAX_ROUTES = 8
_SHED = "The queue of lane {lane!r} is full ({depth} calls wait). Send less at once, or try again in a moment."


class Plan(NamedTuple):
    """What judges a task: ``verifier`` or ``recipe`` (one of the two), and the options after routing."""

    verifier: str | None = None
    recipe: Recipe | None = None
    options: dict[str, Any] = {}


class Engine:
    """Judges tasks. Make one per process, ``await start()`` it in the event loop that will use it."""

    def __init__(self, settings: Settings, *, metrics: Metrics | None = None) -> None:
        self.settings = settings
        self.metrics = metrics or Metrics()
        self.recipes: Mapping[str, Recipe] = settings.recipes
        self.routes: Sequence[RowRoute] = settings.routes
        self._executors = Executors(settings.sandbox)
        self.draining = False
        self._cache = VerdictCache(settings.cache.entries)
        self._flights = Flights()
        self._store: Store = open_store(settings.store, self.metrics)
        self._dispatcher: Dispatcher | None = None
        self._recipe_versions: dict[int, tuple[Recipe, str]] = {}

    async def start(self) -> None:
        """Load verifiers, check recipes, start lanes.

        Raises:
            ValueError: a recipe is wrong; the message names it.
            ImportError: a module of ``plugins`` cannot be imported.
            SandboxUnavailable: this host cannot isolate as well as ``sandbox.require_isolation`` asks.
        """
        for module in self.settings.plugins:
            importlib.import_module(module)
        compose.check_recipes(self.recipes, registry.names())
        self._dispatcher = LocalDispatcher(self.settings, self.metrics, self._executors)
        try:
            await asyncio.gather(self._executors.start(), self._dispatcher.start())
        except BaseException:
            await self.stop()
            raise
        self._store.start()

    async def stop(self) -> None:
        """Stop the lanes, kill what runs, write what is to be recorded."""
        if self._dispatcher is not None:
            await self._dispatcher.stop()
        await self._executors.stop()
        await asyncio.to_thread(self._store.stop)

    @property
    def sandbox(self) -> Sandbox | None:
        """What runs programs; ``None`` if nothing can."""
        return self._executors.sandbox

    @property
    def sandbox_problem(self) -> str:
        """Why nothing can run programs."""
        return self._executors.problem

    def state(self) -> dict[str, Any]:
        """What ``/readyz`` shows: is everything up, and if not, why."""
        return {
            "ready": self._dispatcher is not None and not self.draining,
            "draining": self.draining,
            **self._executors.describe(),
            "lanes": self._dispatcher.describe() if self._dispatcher else {},
            "cache_entries": len(self._cache),
            "store": self._store.describe(),
        }

    def children(self) -> list[dict[str, Any]]:
        """The processes behind this engine, each ``{"lane", "pid", "kill"}``; tests kill them."""
        return self._dispatcher.children() if self._dispatcher else []

    # --- submit -----------------------------------------------------------------------------------------------------

    async def submit(
        self,
        tasks: Sequence[Task | Submission | Verdict],
        *,
        deadline_s: float | None = None,
        request_id: str = "",
    ) -> AsyncGenerator[tuple[int, Verdict], None]:
        """Judge ``tasks``; yield ``(index, verdict)`` as verdicts are ready, each index exactly once.

        A :class:`Verdict` among the tasks is one that was settled before (a task that could not be read) and is passed
        through. After ``deadline_s`` the rest is ``cancelled``; so it is when the iterator is closed early.
        """
        ready: asyncio.Queue[int] = asyncio.Queue()
        pending: dict[int, asyncio.Future[Verdict]] = {}
        expires = None if deadline_s is None else time.monotonic() + deadline_s
        breath = time.monotonic()
        try:
            for index, item in enumerate(tasks):
                outcome = item if isinstance(item, Verdict) else self._begin(item)
                if isinstance(outcome, Verdict):
                    yield index, self._record(item, outcome, request_id)
                else:
                    pending[index] = outcome
                    outcome.add_done_callback(lambda _, index=index: ready.put_nowait(index))  # type: ignore[misc]
                if time.monotonic() - breath > _BREATH_S:
                    await asyncio.sleep(0)
                    breath = time.monotonic()
            while pending:
                index = await self._next_ready(ready, expires)
                if index < 0:
                    break
                verdict = self._result(pending.pop(index))
                yield index, self._record(tasks[index], verdict, request_id)
            for index, future in list(pending.items()):
                future.cancel()
                del pending[index]
                verdict = Verdict.failed("cancelled", f"The deadline of this call ({deadline_s:g} s) passed.")
                yield index, self._record(tasks[index], verdict, request_id)
        finally:
            for future in pending.values():
                future.cancel()

    async def judge_all(
        self,
        tasks: Sequence[Task | Submission | Verdict],
        *,
        deadline_s: float | None = None,
        request_id: str = "",
    ) -> list[Verdict]:
        """All verdicts, in the order of ``tasks``."""
        verdicts: list[Verdict | None] = [None] * len(tasks)
        async for index, verdict in self.submit(tasks, deadline_s=deadline_s, request_id=request_id):
            verdicts[index] = verdict
        return [verdict for verdict in verdicts if verdict is not None]

    @staticmethod
    async def _next_ready(ready: asyncio.Queue[int], expires: float | None) -> int:
        if expires is None:
            return await ready.get()
        try:
            async with asyncio.timeout(max(0.0, expires - time.monotonic())):
                return await ready.get()
        except TimeoutError:
            return -1

    @staticmethod
    def _result(future: asyncio.Future[Verdict]) -> Verdict:
        if future.cancelled():
            return Verdict.failed("cancelled", "The work was cancelled.")
        error = future.exception()
        if error is not None:
            get_logger().error("engine.bug", exc_info=error)
            return Verdict.failed(
                "verifier_error", f"A bug of ours: {type(error).__name__}. The server's log has more."
            )
        return future.result()

    def _record(self, item: Task | Submission | Verdict, verdict: Verdict, request_id: str) -> Verdict:
        task = item.task if isinstance(item, Submission) else item if isinstance(item, Task) else None
        if task is not None:
            verdict.id = task.id
        self.metrics.judged(verdict)
        self._store.record(task, verdict, request_id)
        return verdict

    async def execute(
        self,
        program: Program,
        runs: Sequence[Run],
        limits: Limits,
        *,
        stop_at_failure: bool = False,
        queue_timeout_s: float | None = None,
    ) -> list[RunResult]:
        """Run ``program`` as it is, in a slot of the sandbox lane. Raises :class:`NotExecuted`."""
        assert self._dispatcher is not None
        waits_s = queue_timeout_s or self.settings.lanes.queue_timeout_s
        future: asyncio.Future[list[RunResult]] = asyncio.get_running_loop().create_future()
        if not self._dispatcher.execute(Execution(program, runs, limits, waits_s, future, stop_at_failure)):
            raise NotExecuted("overloaded", "The queue of the sandbox is full. Send less at once.")
        return await future

    # --- plans ------------------------------------------------------------------------------------------------------

    def resolve(self, task: Task, recipe: Recipe | None = None) -> Plan:
        """What judges ``task``: a verifier, or a recipe with parts, after all routes.

        Raises:
            InvalidTask: the task names neither or both, or something that is not there.
        """
        if recipe is None:
            if (task.verifier is None) == (task.recipe is None):
                raise InvalidTask("Name a verifier or a recipe for the task (one of the two).")
            if task.recipe is None:
                return Plan(verifier=task.verifier, options=task.options)
            recipe = self._recipe(task.recipe)
        options: dict[str, Any] = dict(task.options)
        for _ in range(_MAX_ROUTES):
            if not recipe.routes:
                return Plan(recipe=recipe, options=options)
            route: Route = compose.resolve_route(recipe, task.metadata)
            options = {**route.options, **options}
            if route.verifier is not None:
                return Plan(verifier=route.verifier, options=options)
            assert route.recipe is not None
            recipe = self._recipe(route.recipe)
        raise InvalidTask(f"Recipe {recipe.name!r} is behind more than {_MAX_ROUTES} routes.")

    def _begin(self, item: Task | Submission) -> Verdict | asyncio.Future[Verdict]:
        """Judge now if it is inline work, else promise."""
        task, recipe = (item.task, item.recipe) if isinstance(item, Submission) else (item, None)
        with boundary("Reading the task") as outcome:
            plan = self.resolve(task, recipe)
            if plan.verifier is not None:
                return self._call(task, plan.verifier, options=plan.options)
            assert plan.recipe is not None
            return asyncio.ensure_future(self._run_recipe(task, plan.recipe, plan.options))
        assert outcome.failure is not None
        return outcome.failure

    def _recipe(self, name: str) -> Recipe:
        try:
            return self.recipes[name]
        except KeyError:
            raise InvalidTask(f"There is no recipe {name[:100]!r}.{nearest(name, self.recipes)}") from None

    async def _run_recipe(self, task: Task, recipe: Recipe, options: Mapping[str, Any]) -> Verdict:
        started = time.monotonic()
        done: dict[str, Verdict] = {}
        while parts := compose.ready(recipe, done):
            done.update(zip((p.name for p in parts), await self._run_parts(task, recipe, parts, options), strict=True))
        with boundary(f"Recipe {recipe.name!r}") as outcome:
            verdict = compose.combine(recipe, done)
        if outcome.failure is not None:
            verdict = outcome.failure
        verdict.verifier = f"recipe:{recipe.name}"
        verdict.version = self._recipe_version(recipe)
        verdict.cached = bool(done) and all(part.cached for part in done.values())
        verdict.timing.queue_ms = max((part.timing.queue_ms for part in done.values()), default=0.0)
        verdict.timing.run_ms = round((time.monotonic() - started) * 1000 - verdict.timing.queue_ms, 3)
        return verdict

    async def _run_parts(
        self, task: Task, recipe: Recipe, parts: Sequence[Part], options: Mapping[str, Any]
    ) -> list[Verdict]:
        started = [self._begin_part(task, recipe, part, options) for part in parts]
        futures = [outcome for outcome in started if not isinstance(outcome, Verdict)]
        try:
            if futures:
                await asyncio.wait(futures)
        except asyncio.CancelledError:
            for future in futures:
                future.cancel()
            raise
        return [outcome if isinstance(outcome, Verdict) else self._result(outcome) for outcome in started]

    def _begin_part(
        self, task: Task, recipe: Recipe, part: Part, options: Mapping[str, Any]
    ) -> Verdict | asyncio.Future[Verdict]:
        with boundary(f"Part {part.name!r}") as outcome:
            chosen = compose.part_options(recipe, part, options)
            reference = compose.part_reference(part, task.reference)
            return self._call(task, part.verifier, options=chosen, reference=reference)
        assert outcome.failure is not None
        return outcome.failure

    def _recipe_version(self, recipe: Recipe) -> str:
        """Changes whenever the recipe does."""
        known = self._recipe_versions.get(id(recipe))
        if known is None or known[0] is not recipe:
            digest = hashlib.blake2b(recipe.model_dump_json().encode(), digest_size=4).hexdigest()
            known = (recipe, digest)
            if len(self._recipe_versions) > 10_000:
                self._recipe_versions.clear()
            self._recipe_versions[id(recipe)] = known
        return known[1]

    # --- calls ------------------------------------------------------------------------------------------------------

    def _call(
        self, task: Task, name: str, *, options: Mapping[str, Any] | None = None, reference: Any = None
    ) -> Verdict | asyncio.Future[Verdict]:
        """One call of one verifier: inline now, or through cache, flights and dispatcher."""
        with boundary(f"Verifier {name[:100]!r}") as outcome:
            prepared = prepare(
                task,
                name,
                max_response_chars=self.settings.limits.max_response_chars,
                options=options,
                reference=reference,
            )
            if prepared.lane == "inline":
                return self._run_inline(prepared)
            return self._enqueue(prepared, task)
        assert outcome.failure is not None
        return outcome.failure

    def _run_inline(self, prepared: Prepared) -> Verdict:
        started = time.perf_counter()
        verdict = judge(prepared.verifier, prepared.call)
        verdict.timing.run_ms = round((time.perf_counter() - started) * 1000, 3)
        verdict.verifier = prepared.verifier.name
        verdict.version = prepared.verifier.version
        return verdict

    def _enqueue(self, prepared: Prepared, task: Task) -> Verdict | asyncio.Future[Verdict]:
        assert self._dispatcher is not None
        job = Job(
            verifier=prepared.verifier,
            lane=prepared.lane,
            call=prepared.call,
            reference=prepared.reference,
            options=prepared.options,
            timeout_s=prepared.timeout_s,
            queue_timeout_s=task.queue_timeout_s or self.settings.lanes.queue_timeout_s,
            future=asyncio.get_running_loop().create_future(),
        )
        key = cache_key(job)
        verdict = self._cache.get(key)
        if verdict is not None:
            self.metrics.cache_hits.labels("stored").inc()
            return again(verdict)
        shared = self._flights.join((key, job.timeout_s))
        if shared is not None:
            self.metrics.cache_hits.labels("joined").inc()
            return copied(shared)
        self.metrics.cache_misses.inc()
        if not self._dispatcher.submit(job):
            depth = self._dispatcher.describe().get(job.lane, {}).get("waiting", 0)
            verdict = Verdict.failed("overloaded", _SHED.format(lane=job.lane, depth=depth))
            return _named(verdict, prepared)

        def landed(verdict: Verdict) -> None:
            self._cache.put(key, fresh(_named(verdict, prepared)))

        return self._flights.open((key, job.timeout_s), job, landed)


def _named(verdict: Verdict, prepared: Prepared) -> Verdict:
    verdict.verifier = prepared.verifier.name
    verdict.version = prepared.verifier.version
    return verdict
