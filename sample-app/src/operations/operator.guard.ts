import { Inject, Injectable, UnauthorizedException, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createHash, timingSafeEqual } from 'node:crypto';
import { Settings } from '../settings.js';

/** The name under which operators log in. */
export const OPERATOR = 'ops';

/**
 * Lets in whoever knows the token: a browser asks for it as a password, and sends it along with whatever the page
 * loads.
 */
@Injectable()
export class OperatorGuard implements CanActivate {
  constructor(@Inject(Settings) private readonly settings: Settings) {}

  canActivate(context: ExecutionContext): boolean {
    const http = context.switchToHttp();
    const expected = `Basic ${Buffer.from(`${OPERATOR}:${this.settings.operatorToken}`).toString('base64')}`;
    if (timingSafeEqual(digest(http.getRequest<IncomingMessage>().headers.authorization ?? ''), digest(expected))) {
      return true;
    }
    http.getResponse<ServerResponse>().setHeader('WWW-Authenticate', 'Basic realm="locks"');
    throw new UnauthorizedException();
  }
}

/** Of the same length for all texts, as the comparison wants it. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
