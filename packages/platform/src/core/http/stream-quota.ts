import { ApiError } from '../errors.ts'

/**
 * Maximum numbers of open streams of one process: with an API key or session (`keyed`) and without
 * (`open`), of one API key or session (`holder`), and, without a key, of one client network
 * (`address`) and of one resource such as an invoice (`resource`).
 */
export const STREAMS_MAX = {
  holder: 16,
  address: 64,
  resource: 64,
  keyed: 1000,
  open: 1000,
} as const
type Limits = { readonly [Name in keyof typeof STREAMS_MAX]: number }

/** Owner of a stream. */
export type StreamOwner =
  /**
   * Owner with a key or session. `name`: the API key or session. `share`: workspace or person among
   * which places are divided.
   */
  | { kind: 'holder'; name: string; share: string }
  /**
   * `network` and `site` as in `clientNetworks`. `resource`: the subject of the stream, for example
   * `invoice inv_…`.
   */
  | { kind: 'open'; network: string; site: string; resource: string | null }

interface OpenStream {
  owner: StreamOwner
  end: (() => void) | null
}

/** Streams counted by the name of their owner. */
class Groups {
  readonly #places = new Map<string, Set<OpenStream>>()

  of(name: string): ReadonlySet<OpenStream> {
    return this.#places.get(name) ?? NONE
  }

  add(name: string, place: OpenStream): void {
    const places = this.#places.get(name)
    if (places) places.add(place)
    else this.#places.set(name, new Set([place]))
  }

  remove(name: string, place: OpenStream): void {
    const places = this.#places.get(name)
    if (places?.delete(place) && places.size === 0) this.#places.delete(name)
  }

  /** Number of names that have a stream. */
  get size(): number {
    return this.#places.size
  }
}
const NONE: ReadonlySet<OpenStream> = new Set()

/**
 * Places for open streams. Streams without a key never use the places of streams with a key. When
 * all places of a kind are taken, a new stream replaces one of the share that has the most, if that
 * leaves this share with at least as many streams as the new stream's share; otherwise it is
 * rejected. So a share with fewer streams than an equal part always gets a place.
 */
export class StreamQuota {
  readonly #limits: Limits
  readonly #places = { holder: new Set<OpenStream>(), open: new Set<OpenStream>() }
  readonly #holders = new Groups()
  readonly #networks = new Groups()
  readonly #resources = new Groups()

  constructor(limits: Limits = STREAMS_MAX) {
    this.#limits = limits
  }

  /**
   * Checks whether {@link take} would succeed, without ending a stream.
   * @throws ApiError `RATE_LIMITED` or `UNAVAILABLE` if {@link take} would throw
   */
  assertFree(owner: StreamOwner): void {
    this.#victims(owner)
  }

  /**
   * Takes a place for a stream.
   * @param end ends the stream, so that another one gets its place; null if it must not be ended
   *   early
   * @returns a function that frees the place; further calls do nothing
   * @throws ApiError `RATE_LIMITED` if the quota of its owner is used up, `UNAVAILABLE` if all
   *   places are taken fairly
   */
  take(owner: StreamOwner, end: (() => void) | null): () => void {
    for (const victim of this.#victims(owner)) {
      this.#remove(victim)
      victim.end?.()
    }
    const place: OpenStream = { owner, end }
    this.#places[owner.kind].add(place)
    if (owner.kind === 'holder') this.#holders.add(owner.name, place)
    else {
      this.#networks.add(owner.network, place)
      if (owner.resource !== null) this.#resources.add(owner.resource, place)
    }
    return () => this.#remove(place)
  }

  /** Number of open streams. */
  get size(): number {
    return this.#places.holder.size + this.#places.open.size
  }

  /** Number of names that are in memory; 0 after every stream has ended. */
  get names(): number {
    return this.#holders.size + this.#networks.size + this.#resources.size
  }

  /** Returns the streams that end so that a stream of this owner can begin: none, one, or two. */
  #victims(owner: StreamOwner): OpenStream[] {
    const victims: OpenStream[] = []
    if (owner.kind === 'holder') {
      this.#assertQuota(
        this.#holders.of(owner.name),
        this.#limits.holder,
        owner.name.split(' ')[0] as string,
      )
    } else {
      this.#assertQuota(this.#networks.of(owner.network), this.#limits.address, 'address')
      const { resource } = owner
      if (resource !== null) {
        const places = this.#resources.of(resource)
        const victim = replaceable(places, this.#limits.resource, owner)
        if (victim === undefined)
          this.#assertQuota(places, this.#limits.resource, resource.split(' ')[0] as string)
        if (victim) victims.push(victim)
      }
    }
    const most = owner.kind === 'holder' ? this.#limits.keyed : this.#limits.open
    if (victims.length > 0) return victims
    const victim = replaceable(this.#places[owner.kind], most, owner)
    if (victim === undefined) {
      throw new ApiError(
        'UNAVAILABLE',
        `${most} streams ${owner.kind === 'holder' ? 'with' : 'without'} a key are open, which is the maximum; try again later`,
      )
    }
    return victim ? [victim] : []
  }

  #assertQuota(places: ReadonlySet<OpenStream>, most: number, what: string): void {
    if (places.size < most) return
    throw new ApiError(
      'RATE_LIMITED',
      `${most} streams of this ${what} are open, which is the maximum; close one, or try again later`,
    )
  }

  #remove(place: OpenStream): void {
    const { owner } = place
    this.#places[owner.kind].delete(place)
    if (owner.kind === 'holder') this.#holders.remove(owner.name, place)
    else {
      this.#networks.remove(owner.network, place)
      if (owner.resource !== null) this.#resources.remove(owner.resource, place)
    }
  }
}

const shareOf = (owner: StreamOwner): string => (owner.kind === 'holder' ? owner.share : owner.site)

/**
 * Finds the stream that a new stream of this owner replaces.
 * @returns null if a place is free; the stream to replace; undefined if the new stream must be
 *   rejected
 */
function replaceable(
  places: ReadonlySet<OpenStream>,
  most: number,
  owner: StreamOwner,
): OpenStream | null | undefined {
  if (places.size < most) return null
  const counts = new Map<string, { all: number; newest: OpenStream | undefined }>()
  for (const place of places) {
    const share = shareOf(place.owner)
    const count = counts.get(share) ?? { all: 0, newest: undefined }
    counts.set(share, { all: count.all + 1, newest: place.end === null ? count.newest : place })
  }
  const own = counts.get(shareOf(owner))?.all ?? 0
  let largest = own + 1
  let victim: OpenStream | undefined
  for (const { all, newest } of counts.values()) {
    if (all <= largest || newest === undefined) continue
    largest = all
    victim = newest
  }
  return victim
}
