import { Injectable, type CallHandler, type ExecutionContext, type NestInterceptor } from '@nestjs/common';
import { trace } from '@opentelemetry/api';
import { finalize, type Observable } from 'rxjs';

/**
 * A span for each request, which is the parent of the spans of its locks. Its name is the path of the route, since the
 * path of the request names the customer. Leave this out where `@opentelemetry/instrumentation-http` makes such spans.
 */
@Injectable()
export class RequestSpans implements NestInterceptor {
  intercept(execution: ExecutionContext, next: CallHandler): Observable<unknown> {
    const { method, route } = execution.switchToHttp().getRequest<{ method: string; route: { path: string } }>();
    return trace
      .getTracer('sample-app')
      .startActiveSpan(`${method} ${route.path}`, (span) => next.handle().pipe(finalize(() => span.end())));
  }
}
