import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as rules from './refresh-rules.ts'
import type { Entry } from '../store/entries/index.ts'
import { State } from '../store/state.ts'

/**
 * Explores every order of events for the shares of one key at two honest nodes, 1 and 2. Node 3
 * lies, leads every ceremony, and loses or delays any message; either honest node can be killed at
 * any moment. The rules and the state of the record are the production code. The model allows more
 * than can happen, which reduces the number of cases:
 *
 * - Node 3 passes every test, certifies every ceremony, and sends any message that is requested.
 * - A ceremony can end at one node at any time after the other one has opened it.
 * - An answer of a peer can be used at any later time. Therefore a kill, after which the answer
 *   cannot be used, needs no separate move.
 */
const HONEST = [1, 2] as const
type Honest = (typeof HONEST)[number]
const LIAR = 3
const KEY = 'k'
const other = (node: Honest): Honest => (node === 1 ? 2 : 1)

interface Node {
  state: State
  /** The ceremony in which the node takes part. */
  run: number | null
  /** Ceremonies for which the node has ever reported that it had switched. */
  said: Set<string>
  /** Ceremonies that the peer had abandoned when this node queried it. */
  promised: Set<number>
}
interface ExplorerState {
  nodes: Record<Honest, Node>
  /**
   * By ceremony: the epoch at which it begins, the nodes that have ever opened it, and those whose
   * certificate node 3 has.
   */
  runs: { epoch: number; opened: Set<Honest>; certified: Set<Honest> }[]
}

const sessionOf = (run: number): string => `run-${run}`
const nameOf = (state: ExplorerState, run: number) => ({
  key_id: KEY,
  epoch: state.runs[run]!.epoch + 1,
  session: sessionOf(run),
})

function fresh(): ExplorerState {
  const node = (): Node => {
    const state = new State()
    state.apply({
      height: 1,
      at: 0,
      kind: 'key',
      body: {
        key_id: KEY,
        curve: 'secp256k1',
        public_key: '',
        chain_code: '',
        mode: '',
        epoch: 0,
        signatures: [],
        session: 'made',
      },
    })
    return { state, run: null, said: new Set(), promised: new Set() }
  }
  return { nodes: { 1: node(), 2: node() }, runs: [] }
}

/** Returns a key of a state: two states with the same key have the same future. */
function print({ nodes, runs }: ExplorerState): string {
  const of = ({ state, run, said, promised }: Node) => {
    const { epoch, session, previous } = state.keys.get(KEY)!
    const prepared = state.prepared.get(KEY)
    return [
      epoch,
      session,
      previous,
      prepared && [prepared.epoch, prepared.session, [...prepared.tested].sort()],
      run,
      [...said].sort(),
      [...promised].sort(),
    ]
  }
  return JSON.stringify([
    of(nodes[1]),
    of(nodes[2]),
    runs.map(({ epoch, opened, certified }) => [epoch, [...opened].sort(), [...certified].sort()]),
  ])
}

function copy({ nodes, runs }: ExplorerState): ExplorerState {
  const of = ({ state, run, said, promised }: Node): Node => {
    const copied = new State()
    copied.keys.set(KEY, state.keys.get(KEY)!)
    const prepared = state.prepared.get(KEY)
    if (prepared) copied.prepared.set(KEY, { ...prepared, tested: new Set(prepared.tested) })
    return { state: copied, run, said: new Set(said), promised: new Set(promised) }
  }
  return {
    nodes: { 1: of(nodes[1]), 2: of(nodes[2]) },
    runs: runs.map(({ epoch, opened, certified }) => ({
      epoch,
      opened: new Set(opened),
      certified: new Set(certified),
    })),
  }
}

type Rules = typeof rules
type Move = [name: string, apply: (explorerState: ExplorerState) => void]
const write = <
  K extends 'prepared' | 'tested' | 'refreshed' | 'forgotten' | 'abandoned' | 'reverted',
>(
  node: Node,
  kind: K,
  body: Entry<K>['body'],
): void => {
  node.state.apply({ height: 1, at: 0, kind, body } as Parameters<State['apply']>[0])
}

/** Returns every event that can happen next. */
function movesOf(
  world: ExplorerState,
  runsMax: number,
  { abandonRefusal, forgetRefusal, refreshRefusal, revertRefusal, switchRefusal }: Rules,
): Move[] {
  const moves: Move[] = []
  const add = (name: string, apply: (next: ExplorerState) => void): void => {
    moves.push([name, apply])
  }
  const epochs = new Set(HONEST.map((node) => world.nodes[node].state.keys.get(KEY)!.epoch))
  if (world.runs.length < runsMax) {
    for (const epoch of epochs)
      add(`3 begins run ${world.runs.length} at epoch ${epoch}`, (next) => {
        next.runs.push({ epoch, opened: new Set(), certified: new Set() })
      })
  }
  for (const node of HONEST) {
    const { state, run, promised } = world.nodes[node]
    const key = state.keys.get(KEY)!
    const prepared = state.prepared.get(KEY)
    const peer = world.nodes[other(node)]
    const peerKey = peer.state.keys.get(KEY)!
    world.runs.forEach(({ epoch, opened, certified }, at) => {
      const name = nameOf(world, at)
      const fits = refreshRefusal(key, epoch) === null
      // Opening a ceremony ends the one that the same leader opened earlier.
      if (!opened.has(node) && fits) {
        add(`${node} opens run ${at}`, (next) => {
          next.nodes[node].run = at
          next.runs[at]!.opened.add(node)
        })
      }
      if (run === at && opened.size === 2 && !certified.has(node) && fits) {
        add(`${node} keeps the share of run ${at} and certifies it`, (next) => {
          next.runs[at]!.certified.add(node)
        })
      }
      if (run === at && certified.size === 2 && fits) {
        add(`${node} has all certificates of run ${at}`, (next) => {
          next.nodes[node].run = null
          write(next.nodes[node], 'prepared', {
            ...name,
            curve: 'secp256k1',
            public_key: '',
            chain_code: '',
            mode: '',
            signatures: [],
          })
          write(next.nodes[node], 'tested', { ...name, partner: LIAR })
        })
      }
      if (
        switchRefusal(state, name, [other(node), LIAR]) === null &&
        key.session !== name.session
      ) {
        add(`${node} switches to run ${at}`, (next) => {
          write(next.nodes[node], 'refreshed', name)
          next.nodes[node].said.add(name.session)
        })
      }
      // The peer requests this after it has switched and can no longer wait for this node.
      if (
        abandonRefusal(state, name) === null &&
        peerKey.session === name.session &&
        peerKey.previous &&
        !peer.promised.has(at)
      ) {
        add(`${node} abandons run ${at}`, (next) => {
          if (next.nodes[node].state.prepared.get(KEY)?.session === name.session)
            write(next.nodes[node], 'abandoned', name)
          next.nodes[other(node)].promised.add(at)
        })
      }
      if (promised.has(at) && revertRefusal(state, name) === null) {
        add(`${node} goes back from run ${at}`, (next) => {
          write(next.nodes[node], 'reverted', name)
        })
      }
    })
    // A test passes at both nodes, or one is killed before it has recorded the result.
    if (
      prepared &&
      !prepared.tested.has(other(node)) &&
      peer.state.prepared.get(KEY)?.session === prepared.session
    ) {
      const name = { key_id: KEY, epoch: prepared.epoch, session: prepared.session }
      add(`${node} has tested with ${other(node)}`, (next) => {
        write(next.nodes[node], 'tested', { ...name, partner: other(node) })
      })
    }
    const mine: rules.Switched & { key_id: string; session: string } = {
      key_id: KEY,
      epoch: key.epoch,
      session: key.session!,
    }
    if (
      key.previous &&
      forgetRefusal(state, mine, [peer.said.has(mine.session) ? mine : peerKey, mine]) === null
    ) {
      add(`${node} wipes its old share`, (next) => {
        write(next.nodes[node], 'forgotten', { key_id: KEY, epoch: mine.epoch - 1 })
      })
    }
  }
  return moves
}

/**
 * Returns the shares that two nodes use for a signature: the coordinator names an epoch, and the
 * partner reports its own epoch if it does not have that one.
 */
function agreed(
  coordinator: State,
  partner: State,
): [string | null | undefined, string | null | undefined] {
  const preferred = (state: State) =>
    state.keys.get(KEY)!.previous?.epoch ?? state.keys.get(KEY)!.epoch
  const named = preferred(coordinator)
  const epoch = partner.sessionOf(KEY, named) === undefined ? preferred(partner) : named
  return [coordinator.sessionOf(KEY, epoch), partner.sessionOf(KEY, epoch)]
}

function assertCanSign({ nodes }: ExplorerState, describe: () => string): void {
  for (const node of HONEST) {
    const [mine, theirs] = agreed(nodes[node].state, nodes[other(node)].state)
    assert.ok(
      mine !== undefined && mine === theirs,
      `node ${node} has ${mine}, its partner ${theirs}: ${describe()}`,
    )
  }
}

/**
 * Searches breadth first, so that the sequence of events of a failure is a shortest one. @returns
 * the number of states
 */
function explore(runsMax: number, by: Rules = rules): number {
  const seen = new Map<string, { from: string | null; move: string }>()
  const start = fresh()
  let edge: [string, ExplorerState][] = [[print(start), start]]
  seen.set(edge[0]![0], { from: null, move: 'start' })
  while (edge.length > 0) {
    const next: [string, ExplorerState][] = []
    for (const [name, state] of edge) {
      for (const [move, apply] of movesOf(state, runsMax, by)) {
        const to = copy(state)
        apply(to)
        const reached = print(to)
        if (seen.has(reached)) continue
        seen.set(reached, { from: name, move })
        assertCanSign(to, () => {
          const moves: string[] = []
          for (let at: string | null = reached; at !== null; at = seen.get(at)!.from)
            moves.unshift(seen.get(at)!.move)
          return moves.join('; ')
        })
        next.push([reached, to])
      }
    }
    edge = next
  }
  return seen.size
}

test('for any messages of one node and any kills, two honest nodes agree on shares of one run', (context) => {
  for (const runs of [1, 2, 3]) context.diagnostic(`${runs} runs: ${explore(runs)} states`)
})

test('without any one of its rules, the explorer finds a violation', () => {
  const without = (changed: Partial<Rules>) => () => explore(2, { ...rules, ...changed })
  // The earlier rule, by which the old share is deleted when the leader says so.
  assert.throws(
    without({
      forgetRefusal: (state, name) => (state.keys.get(KEY)!.session === name.session ? null : 'no'),
    }),
    /node 1 has .*wipes its old share/,
  )
  assert.throws(
    without({
      forgetRefusal: (state, name, switched) => rules.forgetRefusal(state, name, switched.slice(1)),
    }),
    /wipes its old share/,
  )
  assert.throws(without({ abandonRefusal: () => null }), /goes back from run/)
})
