import type { z } from 'zod'
import type { Context, Operation, Reply } from '../http/endpoint.ts'
import type { Role } from './roles.ts'
import type { From, Session } from './sessions.ts'

/** Who asks by a session, or without one. */
export interface Visitor {
  from: From
  /** Who is signed in, where somebody is. */
  someone: Session | null
  /** The same, present wherever `needs` is not `nobody`. */
  session: Session
  /** His place in the workspace of the path; present where the path names one. */
  member: { workspaceId: string; workspace: string; role: Role }
}

/**
 * `caller`: the session as a reading key of the sub-account that the path names. `signed` is never
 * there.
 */
interface PanelContext<Body, Query, Params> extends Context<Body, Query, Params> {
  visitor: Visitor
}

/**
 * Who may ask. `nobody`: everybody, signed in or not. `anybody`: who is signed in. A role: its
 * holders, and those above, in the workspace of the path.
 */
type Needs = 'nobody' | 'anybody' | Role

/**
 * One endpoint of the control panel, asked by its pages in a session. It is none of the API, and
 * moves no coins.
 */
export interface PanelEndpoint<
  B extends z.ZodType = z.ZodType,
  Q extends z.ZodType = z.ZodType,
  P extends z.ZodType = z.ZodType,
> extends Operation<B, Q, P> {
  needs: Needs
  /** Asked only by who has shown a factor of his in the last quarter of an hour. */
  isSensitive?: true
  handler(context: PanelContext<z.output<B>, z.output<Q>, z.output<P>>): Promise<Reply>
}

/** Keeps the types of one endpoint's schemas for its handler. */
export function panelEndpoint<B extends z.ZodType, Q extends z.ZodType, P extends z.ZodType>(
  definition: PanelEndpoint<B, Q, P>,
): PanelEndpoint {
  return definition as unknown as PanelEndpoint
}
