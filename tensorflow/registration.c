// SPDX-License-Identifier: Apache-2.0
#include "registration.h"
#include "outcome.h"
#include "tensorflow_api.h"

static void infer_shapes(struct TF_ShapeInferenceContext *context, struct TF_Status *status)
{
    tfos__tf.ShapeInferenceContextSetUnknownShape(context, status);
}

void tfos__registration_finish(struct TF_OpDefinitionBuilder *op, const char *name,
                               void (*compute)(void *kernel, struct TF_OpKernelContext *context),
                               struct TF_Status *status)
{
    tfos__tf.OpDefinitionBuilderSetShapeInferenceFunction(op, infer_shapes);
    if (tfos__outcome_is_ok(status))
        tfos__tf.RegisterOpDefinition(op, status);
    if (tfos__outcome_is_ok(status))
        tfos__tf.RegisterKernelBuilder(
            name, tfos__tf.NewKernelBuilder(name, "CPU", NULL, compute, NULL), status);
}
