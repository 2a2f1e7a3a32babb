import type { z } from 'zod'
import type { Context, Operation, Reply } from '../../core/http/endpoint.ts'
import type { Role } from './roles.ts'
import type { From, Session } from './sessions.ts'

/** The sender of a request to the control panel, signed in or not. */
export interface Visitor {
  from: From
  /** The session, if the visitor is signed in. */
  someone: Session | null
  /** The session; present unless `needs` is `nobody`. */
  session: Session
  /** The visitor's membership of the workspace in the path; present if the path has a workspace. */
  member: { workspaceId: string; workspace: string; role: Role }
}

/**
 * Context of a handler of the control panel. `caller`: the session as a read-only key of the
 * sub-account in the path. `signed` is always absent.
 */
interface PanelContext<Body, Query, Params> extends Context<Body, Query, Params> {
  visitor: Visitor
}

/**
 * Required authorization. `nobody`: no session is required. `anybody`: any session. A role: members
 * of the workspace in the path with this role or a higher one.
 */
type RequiredRole = 'nobody' | 'anybody' | Role

/**
 * One endpoint of the control panel, which its pages call in a session. It is not part of the API
 * and cannot move coins.
 */
export interface PanelEndpoint<
  in Services = never,
  B extends z.ZodType = z.ZodType,
  Q extends z.ZodType = z.ZodType,
  P extends z.ZodType = z.ZodType,
> extends Operation<Services, B, Q, P> {
  needs: RequiredRole
  /** Only allowed if the person has confirmed a factor in the last 15 minutes. */
  isSensitive?: true
  handler(
    context: PanelContext<z.output<B>, z.output<Q>, z.output<P>>,
    services: Services,
  ): Promise<Reply>
}

/** Preserves the types of an endpoint's schemas for its handler. */
export function panelEndpoint<
  Services,
  B extends z.ZodType,
  Q extends z.ZodType,
  P extends z.ZodType,
>(definition: PanelEndpoint<Services, B, Q, P>): PanelEndpoint<Services> {
  return definition as unknown as PanelEndpoint<Services>
}
