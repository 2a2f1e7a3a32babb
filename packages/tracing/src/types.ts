/**
 * Attributes of a span: kinds, states, networks and codes; no addresses, amounts, keys or texts of
 * other parties.
 */
export type Attributes = Readonly<Record<string, string | number | boolean>>

/** Functions of a started tracer; see the exported functions of the same names. */
export interface Tracing {
  inTrace<T>(id: string, name: string, attributes: Attributes, work: () => Promise<T>): Promise<T>
  inSpan<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T>
  continued<T>(
    header: string | undefined,
    name: string,
    attributes: Attributes,
    work: () => Promise<T>,
  ): Promise<T>
  part(id: string, name: string, attributes: Attributes, startMs: number, endMs: number): void
  whole(id: string, name: string, attributes: Attributes, startMs: number, endMs: number): void
  header(): string | undefined
  stop(): Promise<void>
}
